import CZeroMQ

/// A ZeroMQ context: its I/O threads and inproc names (`zmq_ctx_new`). Safe to use from any thread.
///
/// Ends when the last socket made from it has: each socket keeps it.
public final class Context: @unchecked Sendable {
    // libzmq's contexts are thread-safe; the pointer never changes.
    let pointer: UnsafeMutableRawPointer

    public init() throws(ZeroMQError) {
        guard let pointer = zmq_ctx_new() else { throw ZeroMQError("zmq_ctx_new") }
        self.pointer = pointer
        // Waiting for a peer to take its last messages would keep a process from ending.
        _ = zmq_ctx_set(pointer, ZMQ_BLOCKY, 0)
    }

    deinit { _ = retrying { zmq_ctx_term(pointer) } }

    /// The most sockets that may be open (`ZMQ_MAX_SOCKETS`); before the first socket.
    public func setMaximumSockets(_ count: Int) { _ = zmq_ctx_set(pointer, ZMQ_MAX_SOCKETS, Int32(clamping: count)) }

    /// Keeps so many of the process's descriptors from being used for connections that come in: what exceeds is closed
    /// at the door. Without it libzmq ends the process when there is no descriptor left. To be called after the limit
    /// was raised.
    public static func reserveDescriptors(_ count: Int) { czeromq_reserve_descriptors(Int32(clamping: count)) }

    /// Leaves the errors of accept(2) on a listening socket of another library unchanged.
    public static func leaveErrors(of listener: Int32) { czeromq_leave_errors(listener) }

    /// That user's connections are limited each, and not all together (``Socket/limitMessages(of:to:kind:)``).
    public static func setUnlimited(_ uid: UInt32?) { czeromq_set_unlimited(uid.map { Int64($0) } ?? -1) }

    /// Counts a connection that the application has ended for what its peer sent.
    public static func count(_ cut: ConnectionCut) { czeromq_count_cut(cut.form) }

    /// Connections that were ended for what their peers sent, in this process.
    public static var connectionsCutOff: Int { Int(clamping: czeromq_connections_cut_off()) }

    /// The last of them; nil: there was none.
    public static var lastConnectionCutOff: ConnectionCut? { ConnectionCut(czeromq_last_cut()) }

    /// Connections that were closed at the door because of the reserve, in this process.
    public static var connectionsTurnedAway: Int { Int(clamping: czeromq_connections_turned_away()) }
}
