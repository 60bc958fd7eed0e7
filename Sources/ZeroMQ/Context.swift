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
}
