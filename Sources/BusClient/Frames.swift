import BusProtocol
import Synchronization

/// The frames of one topic, the newest first of all: who asks late gets the present, and ``Frame/lost`` tells what was left out.
///
/// Ends by an error only. The subscription lasts as long as this value lives.
public final class Frames: AsyncSequence, Sendable {
    public typealias Element = Frame
    public typealias Failure = ClientError

    /// The device's id.
    public let device: String
    /// As it was asked for.
    public let rendition: String
    private let client: Client
    private let number: UInt64
    private let mailbox: Mailbox<RawFrame>
    private let continuity = Mutex(FrameContinuity())

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

    /// The next frame that is newer than the last one given, and can be used: of a format whose frames build on one another a key
    /// frame after each loss.
    ///
    /// - Throws: ``ClientError/refused(_:)`` when the rendition can't be made, ``ClientError/silent(_:)`` as asked for.
    public func next() async throws(ClientError) -> Frame {
        while true {
            var frame = try await mailbox.next().frame()
            let lost = continuity.withLock {
                $0.receive(
                    stream: frame.header.stream, sequence: frame.header.sequence, isKeyframe: frame.header.keyframe)
            }
            guard let lost else { continue }
            frame.lost = lost
            return frame
        }
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let frames: Frames

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> Frame? {
            try await frames.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(frames: self) }
}
