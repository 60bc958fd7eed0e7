import BusProtocol
import BusServer
import CaptureCore
import LinuxIO
import Logging
import ZeroMQ

/// What the process of every device stands on, whatever the device is: its lock file, its loop, its media socket with the door
/// before it.
final class Premises {
    let device: String
    let logger: Logger
    let directory: RuntimeDirectory
    let mediaPath: String
    /// The group that may connect, and the mode that sockets have for it.
    let group: UInt32?
    var mode: UInt32 { group == nil ? 0o600 : 0o660 }
    let loop: Loop
    let context: Context
    let doors: Doors
    let connections: ConnectionGuard
    let socket: MediaSocket
    let errors: ErrorTeller
    private let lock: LockFile
    private let doorkeeper: Doorkeeper

    /// Takes the device's lock file and opens its media socket. To be called on the thread that then runs the loop.
    ///
    /// - Parameter waitingMessages: that wait for a slow subscriber at most, each.
    /// - Throws: `deviceTaken` when another process has the device.
    init(
        _ options: WorkerOptions, waitingMessages: Int = MediaSocket.waitingFrames, logger: Logger
    ) throws(WorkerError) {
        device = options.device
        var logger = logger
        logger[metadataKey: LogKeys.deviceID] = "\(options.device)"
        self.logger = logger
        guard DeviceID.isValid(options.device) else {
            throw .usage("'\(options.device)' is no device id: 1 to 32 of a–z, 0–9 and -")
        }
        do {
            directory = try RuntimeDirectory(options.runtimeDirectory)
        } catch {
            throw .usage("\(error)")
        }
        var group: UInt32?
        if let name = options.group {
            group = CurrentProcess.groupID(named: name)
            if group == nil { throw .usage("there is no group '\(name)'") }
        }
        self.group = group
        let lockPath = directory.deviceLock(options.device)
        do throws(SystemError) {
            // Signed, so that a coordinator that didn't start it finds it also when it says nothing.
            lock = try LockFile(lockPath, isSigned: true)
        } catch {
            throw error.isWouldBlock ? .deviceTaken(lockPath) : .failed("\(error)")
        }
        CurrentProcess.raiseDescriptorLimit()
        // For the device and what a stream needs.
        Context.reserveDescriptors(64)
        mediaPath = directory.mediaSocket(options.device)
        do {
            loop = try Loop()
            context = try Context()
            doors = Doors(options.doors ?? .closed(owner: CurrentProcess.uid))
            doorkeeper = try Doorkeeper(context, loop) { [doors] _, peer in
                doors.admit(uid: peer.uid, gid: peer.gid, pid: peer.pid) ? .admit : .notNow
            }
            connections = ConnectionGuard(
                loop, perUser: options.connectionsPerUser, total: options.connections, logger: logger)
            socket = try MediaSocket(
                context, loop, connections, path: mediaPath, mode: group == nil ? 0o600 : 0o660, group: group,
                waitingMessages: waitingMessages)
            errors = ErrorTeller(device: options.device, loop, socket)
        } catch {
            throw .failed("\(error)")
        }
    }
}
