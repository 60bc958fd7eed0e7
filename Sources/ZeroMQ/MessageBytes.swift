/// The bytes of a message, not copied, and the message with them: as long as this is there, they are.
///
/// A pointer into a message that is used nowhere else dangles as soon as the optimizer sees that; so there is none to
/// be had but within a call.
public struct MessageBytes: RandomAccessCollection {
    private let message: Message

    init(_ message: Message) { self.message = message }

    public var startIndex: Int { 0 }
    public var endIndex: Int { message.count }

    public subscript(position: Int) -> UInt8 { message.withUnsafeBytes { $0[position] } }

    public func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result? {
        try message.withUnsafeBytes { try $0.withMemoryRebound(to: UInt8.self, body) }
    }

    /// Calls the body with the bytes, which are valid until it returns.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result { try message.withUnsafeBytes(body) }
}
