import ZeroMQ

/// What the sockets of a client need from the loop that owns them: time, and a new poll set. On the loop's thread.
protocol SocketLoop: AnyObject {
    var context: Context { get }

    /// Rebuilds the poll set, because the sources of a socket have changed.
    func sourcesChanged()

    /// Calls the action once at this time (monotonic nanoseconds).
    @discardableResult
    func schedule(at time: Int64, _ action: @escaping () -> Void) -> UInt64

    func unschedule(_ token: UInt64?)

    /// Calls back with the obstacle between this client and the gateway; nil: none. Concurrent calls share one
    /// examination.
    func examine(_ bus: RemoteBus, _ tell: @escaping (GatewayObstacle?) -> Void)
}
