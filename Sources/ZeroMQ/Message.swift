import CZeroMQ

/// One frame of a message as libzmq holds it, its bytes not copied.
public final class Message {
    var message = zmq_msg_t()

    init() { zmq_msg_init(&message) }

    deinit { zmq_msg_close(&message) }

    /// The bytes, valid as long as the message lives.
    public var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: zmq_msg_data(&message), count: zmq_msg_size(&message))
    }

    public var count: Int { zmq_msg_size(&message) }

    /// More frames of the same message follow.
    public var hasMore: Bool { zmq_msg_more(&message) != 0 }

    /// A property of the connection that it came from (`zmq_msg_gets`): `Peer-Address`, `User-Id`.
    public func property(_ name: String) -> String? {
        zmq_msg_gets(&message, name).map { String(cString: $0) }
    }
}
