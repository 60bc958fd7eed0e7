import ZeroMQ

/// Bytes as libzmq received them, not copied: a frame's pixels, or an attachment. Safe to use from any thread.
public final class Payload: @unchecked Sendable {
    // libzmq counts references to the content atomically, and nobody writes to it after it was received.
    private let message: Message

    init(_ message: Message) { self.message = message }

    /// How many bytes there are.
    public var count: Int { message.count }

    /// Calls the body with the bytes, which are valid until it returns.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try message.withUnsafeBytes(body)
    }

    /// A copy of the bytes.
    public func copied() -> [UInt8] { withUnsafeBytes { [UInt8]($0) } }
}
