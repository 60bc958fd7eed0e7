import CZeroMQ

/// A fixed set of sockets and descriptors to wait on (`zmq_poll`), kept so that waiting allocates nothing.
public struct PollSet {
    public enum Source {
        case socket(Socket)
        case descriptor(Int32)
        /// A descriptor of which only urgent data (`POLLPRI`) and errors count: a video node's events. To wait for input on
        /// a node that doesn't stream would be an error, or start it.
        case urgent(Int32)
    }

    private var items: [zmq_pollitem_t] = []
    private var sockets: [Socket] = []

    public init(_ sources: [Source]) {
        for source in sources {
            switch source {
            case .socket(let socket):
                items.append(zmq_pollitem_t(socket: socket.pointer, fd: -1, events: Int16(ZMQ_POLLIN), revents: 0))
                sockets.append(socket)
            case .descriptor(let descriptor):
                items.append(zmq_pollitem_t(socket: nil, fd: descriptor, events: Int16(ZMQ_POLLIN), revents: 0))
            case .urgent(let descriptor):
                items.append(zmq_pollitem_t(socket: nil, fd: descriptor, events: Int16(ZMQ_POLLPRI), revents: 0))
            }
        }
    }

    /// Waits until something is readable or in error, for ever if need be.
    ///
    /// - Parameter timeout: milliseconds; nil: no limit.
    public mutating func wait(timeout: Int? = nil) throws(ZeroMQError) {
        let count = Int32(items.count)
        guard retrying({ zmq_poll(&items, count, timeout ?? -1) }) != -1 else { throw ZeroMQError("zmq_poll") }
    }

    /// After ``wait(timeout:)``: whether the source at that index has something to say.
    public func isReady(_ index: Int) -> Bool { items[index].revents != 0 }
}
