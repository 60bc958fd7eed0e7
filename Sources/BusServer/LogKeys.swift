/// The keys of log metadata, so that one search finds a device in every line.
public enum LogKeys {
    public static let deviceID = "device.id"
    public static let lockID = "lock.id"
    public static let lockFence = "lock.fence"
    public static let peerPID = "peer.pid"
    public static let peerUID = "peer.uid"
    public static let requestMethod = "request.method"
    public static let workerPID = "worker.pid"
}
