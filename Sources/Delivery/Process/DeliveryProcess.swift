package import BusProtocol
package import BusServer
package import CaptureCore
import LinuxIO
package import Logging
package import ZeroMQ

/// The parts that every process needs that delivers the frames, sound or sets of one device or rig: the lock file, the
/// loop, the media socket and the access control in front of it.
package final class DeliveryProcess {
    package struct Options {
        /// The id of the device, or the name of the rig.
        package var name: String
        /// What the name is, in error messages.
        package var nameTitle = "device id"
        package var runtimeDirectory: String
        /// The group that may connect to the media socket; nil: only the process's own user.
        package var group: String?
        /// Connections to the media socket, of one user and in all.
        package var connectionsPerUser = 128
        package var connections = 1024
        /// The process that started this one listens at the media socket's path already, and has handed that on as
        /// standard input.
        package var isHandedSocket = false
        /// Messages that wait for each slow subscriber at most.
        package var waitingMessages = MediaSocket.waitingFrames
        /// The users with permission at first.
        package var access = AccessList.closed(owner: CurrentProcess.uid)

        package init(name: String, runtimeDirectory: String) {
            self.name = name
            self.runtimeDirectory = runtimeDirectory
        }
    }

    package let name: String
    package let logger: Logger
    package let directory: RuntimeDirectory
    package let mediaPath: String
    /// The group that may connect to the sockets of this process, and the mode of their files.
    package let group: UInt32?
    package var mode: UInt32 { group == nil ? 0o600 : 0o660 }
    package let loop: Loop
    package let context: Context
    package let access: AccessControl
    package let connections: ConnectionGuard
    package let socket: MediaSocket
    package let errors: ErrorPublisher
    private let lock: LockFile
    private let doorkeeper: Doorkeeper

    /// Descriptors that connections may not take: those are for the device, or the sockets of a rig's devices, and for
    /// what a stream needs.
    private static let reservedDescriptors = 64

    /// Takes the lock file and opens the media socket. Call this on the thread that then runs the loop.
    ///
    /// - Parameter lockPath: returns the path of the lock file.
    /// - Throws: `deviceTaken` when another process holds the lock file.
    package init(
        _ options: Options, lockPath: (RuntimeDirectory) -> String, logger: Logger
    ) throws(StartError) {
        name = options.name
        self.logger = logger
        guard DeviceID.isValid(options.name) else {
            throw .usage("'\(options.name)' is no \(options.nameTitle): 1 to 32 of a–z, 0–9 and -")
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
        let lockPath = lockPath(directory)
        do throws(SystemError) {
            // Signed: a coordinator that did not start this process finds it even if it never connects.
            lock = try LockFile(lockPath, isSigned: true)
        } catch {
            throw error.isWouldBlock ? .deviceTaken(lockPath) : .failed("\(error)")
        }
        do throws(DescriptorShortage) {
            try CurrentProcess.requireDescriptors(2 * Self.reservedDescriptors, for: "this process")
        } catch {
            throw .failed("\(error)")
        }
        Context.reserveDescriptors(Self.reservedDescriptors)
        mediaPath = directory.mediaSocket(options.name)
        do {
            loop = try Loop()
            context = try Context()
            access = AccessControl(options.access, hasOthers: group != nil)
            connections = ConnectionGuard(
                loop, perUser: options.connectionsPerUser, total: options.connections, logger: logger)
            doorkeeper = try Doorkeeper(context, loop, connections) { [access] _, peer in
                access.admit(uid: peer.uid, gid: peer.gid, pid: peer.pid) ? .admit : .notNow
            }
            socket = try MediaSocket(
                context, loop, connections, path: mediaPath, mode: group == nil ? 0o600 : 0o660, group: group,
                waitingMessages: options.waitingMessages,
                inherited: options.isHandedSocket ? InheritedSockets(standardInputAt: mediaPath) : InheritedSockets())
            errors = ErrorPublisher(device: options.name, loop, socket)
        } catch {
            throw .failed("\(error)")
        }
    }
}
