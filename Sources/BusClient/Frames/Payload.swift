import FrameRing
import Synchronization
import ZeroMQ

/// The pixels of a frame, or an attachment, without a copy. It can be used from any thread.
public final class Payload: @unchecked Sendable {
    // libzmq counts references to the content atomically, and nobody writes to it after it was received.
    private enum Content {
        case message(Message)
        case shared(RingPicture, RingLink.LateFrames)
    }

    private let content: Content
    private let isLate = Atomic<Bool>(false)

    init(_ message: Message) { content = .message(message) }

    init(_ picture: RingPicture, _ late: RingLink.LateFrames) { content = .shared(picture, late) }

    /// How many bytes there are.
    public var count: Int {
        switch content {
        case .message(let message): message.count
        case .shared(let picture, _): picture.count
        }
    }

    /// Whether the bytes lie in memory that all readers share, where the device overwrites them some frames later.
    public var isShared: Bool { if case .shared = content { true } else { false } }

    /// Whether all that was read so far is good. Where this is false, what was made of the bytes is to be thrown away:
    /// they were overwritten, and the frame counts as late. Bytes that are not shared are always good.
    public var isIntact: Bool {
        guard case .shared(let picture, let late) = content else { return true }
        if picture.isIntact { return true }
        if !isLate.exchange(true, ordering: .relaxed) { late.add() }
        return false
    }

    /// Calls the body with the bytes, which are valid until it returns. Shared ones may change meanwhile: see
    /// ``isIntact``.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        switch content {
        case .message(let message): try message.withUnsafeBytes(body)
        case .shared(let picture, _): try picture.withUnsafeBytes(body)
        }
    }

    /// A copy of the bytes. Of shared ones: good if ``isIntact`` says so afterwards.
    public func copied() -> [UInt8] { withUnsafeBytes { [UInt8]($0) } }
}
