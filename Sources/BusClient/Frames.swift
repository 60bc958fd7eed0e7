import BusProtocol
import Synchronization

/// The frames of one topic, the newest first of all: who asks late gets the present, and ``Frame/lost`` tells what was left out.
///
/// Ends by an error only. The subscription lasts as long as this value lives.
public final class Frames: AsyncSequence, Sendable {
    public typealias Element = Frame
    public typealias Failure = ClientError

    private struct Last {
        var stream = ""
        var sequence: UInt64 = 0
    }

    /// The device's id.
    public let device: String
    /// As it was asked for.
    public let rendition: String
    private let client: Client
    private let number: UInt64
    private let mailbox: Mailbox<RawFrame>
    private let last = Mutex(Last())

    init(_ client: Client, device: String, rendition: String, number: UInt64, mailbox: Mailbox<RawFrame>) {
        self.client = client
        self.device = device
        self.rendition = rendition
        self.number = number
        self.mailbox = mailbox
    }

    deinit { client.endSubscription(number) }

    /// Ends the subscription; who waits gets ``ClientError/closed``.
    public func close() { client.endSubscription(number) }

    /// The next frame that is newer than the last one given.
    ///
    /// - Throws: ``ClientError/refused(_:)`` when the rendition can't be made, ``ClientError/silent(_:)`` as asked for.
    public func next() async throws(ClientError) -> Frame {
        var frame = try await mailbox.next().frame()
        frame.lost = last.withLock { last in
            defer { last = Last(stream: frame.header.stream, sequence: frame.header.sequence) }
            // A new stream counts anew: what was lost at its beginning can't be known.
            guard last.stream == frame.header.stream, frame.header.sequence > last.sequence else { return 0 }
            return frame.header.sequence - last.sequence - 1
        }
        return frame
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let frames: Frames

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> Frame? {
            try await frames.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(frames: self) }
}
