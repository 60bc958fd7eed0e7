import CZeroMQ
import Glibc

/// Who keeps the bytes that a message borrows, and is told when they are needed no more.
open class MessageOwner: @unchecked Sendable {
    // Without any state of its own.
    public init() {}

    /// Called once for each message that borrowed, on any thread: libzmq and all subscribers are done with the bytes.
    open func giveBack() {}
}

/// One frame of a message as libzmq holds it, its bytes not copied.
///
/// A message can be filled and sent again and again: sending takes its bytes away and leaves it empty.
public final class Message {
    var message = zmq_msg_t()

    /// An empty message.
    public init() { zmq_msg_init(&message) }

    deinit { zmq_msg_close(&message) }

    /// Lets go of the present bytes and makes room for so many new ones, whose values are not set
    /// (`zmq_msg_init_size`).
    ///
    /// - Throws: `ENOMEM`; the message is empty then.
    public func allocate(count: Int) throws(ZeroMQError) {
        zmq_msg_close(&message)
        guard zmq_msg_init_size(&message, count) == 0 else {
            let error = ZeroMQError("zmq_msg_init_size")
            zmq_msg_init(&message)
            throw error
        }
    }

    /// Lets go of the present bytes and takes those of another message, which keeps them: they are counted, not copied
    /// (`zmq_msg_copy`).
    public func share(_ other: Message) throws(ZeroMQError) {
        guard zmq_msg_copy(&message, &other.message) == 0 else { throw ZeroMQError("zmq_msg_copy") }
    }

    /// Lets go of the present bytes and borrows those of somebody else (`zmq_msg_init_data`), whom libzmq keeps until
    /// it needs them no more.
    ///
    /// - Throws: `ENOMEM`; the message is empty then, and the owner has been told.
    public func borrow(_ bytes: UnsafeRawBufferPointer, from owner: MessageOwner) throws(ZeroMQError) {
        zmq_msg_close(&message)
        let hint = Unmanaged.passRetained(owner)
        let data = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
        let result = zmq_msg_init_data(
            &message, data, bytes.count,
            { _, hint in
                if let hint { Unmanaged<MessageOwner>.fromOpaque(hint).takeRetainedValue().giveBack() }
            }, hint.toOpaque())
        guard result == 0 else {
            let error = ZeroMQError("zmq_msg_init_data")
            zmq_msg_init(&message)
            hint.takeRetainedValue().giveBack()
            throw error
        }
    }

    /// Lets go of the bytes.
    public func removeAll() {
        zmq_msg_close(&message)
        zmq_msg_init(&message)
    }

    /// The bytes, which keep the message.
    public var bytes: MessageBytes { MessageBytes(self) }

    /// Calls the body with the bytes, which are valid until it returns.
    @inlinable
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withExtendedLifetime(self) { () throws(Failure) in try body(content) }
    }

    // Only good as long as the message is there and its bytes are the same.
    @usableFromInline
    var content: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: zmq_msg_data(&message), count: zmq_msg_size(&message))
    }

    /// Calls the body with the bytes, to be filled after ``allocate(count:)`` and before the message is sent or shared.
    public func withUnsafeMutableBytes<Result, Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withExtendedLifetime(self) { () throws(Failure) in
            try body(UnsafeMutableRawBufferPointer(start: zmq_msg_data(&message), count: zmq_msg_size(&message)))
        }
    }

    public var count: Int { zmq_msg_size(&message) }

    /// More frames of the same message follow.
    public var hasMore: Bool { zmq_msg_more(&message) != 0 }

    /// The descriptor of the connection that it came from (`ZMQ_SRCFD`); nil where libzmq made the message itself.
    public var connection: Int32? { property("__fd").flatMap { Int32($0) } }

    /// A property of the connection that it came from (`zmq_msg_gets`): `Peer-Address`, `User-Id`.
    public func property(_ name: String) -> String? {
        zmq_msg_gets(&message, name).map { String(cString: $0) }
    }

    /// Calls the body with the bytes of such a property, which are valid until it returns; nil where there is none.
    @inlinable
    public func withProperty<Result>(_ name: String, _ body: (UnsafeRawBufferPointer) -> Result?) -> Result? {
        withExtendedLifetime(self) { content(of: name).flatMap(body) }
    }

    // As `content`.
    @usableFromInline
    func content(of property: String) -> UnsafeRawBufferPointer? {
        zmq_msg_gets(&message, property).map { UnsafeRawBufferPointer(start: $0, count: strlen($0)) }
    }
}
