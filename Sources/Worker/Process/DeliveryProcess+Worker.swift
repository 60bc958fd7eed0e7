import BusProtocol
import BusServer
import CaptureCore
import Delivery
import Logging

extension DeliveryProcess {
    /// Takes the device's lock file and opens its media socket. Call this on the thread that then runs the loop.
    ///
    /// - Parameter waitingMessages: messages that wait for each slow subscriber at most.
    /// - Throws: `deviceTaken` when another process has the device.
    convenience init(
        _ worker: WorkerOptions, waitingMessages: Int = MediaSocket.waitingFrames, logger: Logger
    ) throws(StartError) {
        var options = Options(name: worker.device, runtimeDirectory: worker.runtimeDirectory)
        options.group = worker.group
        options.connectionsPerUser = worker.connectionsPerUser
        options.connections = worker.connections
        options.waitingMessages = waitingMessages
        if let access = worker.accessList { options.access = access }
        var logger = logger
        logger[metadataKey: LogKeys.deviceID] = "\(worker.device)"
        try self.init(options, lockPath: { $0.deviceLock(worker.device) }, logger: logger)
    }
}
