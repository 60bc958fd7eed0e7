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
        /// Where the pixels are; nil: they come with the messages.
        var ring: RingLink?
    }

    /// The device's id.
    public let device: String
    /// As it was asked for.
    public let rendition: String
    private let client: Client
    private let number: UInt64
    private let mailbox: Mailbox<RawFrame>
    private let ring: RingLink?
    private let last: Mutex<Last>

    init(
        _ client: Client, device: String, rendition: String, number: UInt64, mailbox: Mailbox<RawFrame>,
        ring: RingLink?
    ) {
        self.client = client
        self.device = device
        self.rendition = rendition
        self.number = number
        self.mailbox = mailbox
        self.ring = ring
        last = Mutex(Last(ring: ring))
    }

    deinit { client.endSubscription(number) }

    /// Ends the subscription; who waits gets ``ClientError/closed``.
    public func close() {
        client.endSubscription(number)
        ring?.close()
    }

    /// Whether frames come from shared memory: as it was asked for, as long as that can be had.
    public var areShared: Bool { last.withLock { $0.ring != nil } }

    /// Shared frames that were overwritten before they were used, or while they were. Those of the first kind count as
    /// ``Frame/lost`` too.
    public var late: UInt64 { ring?.late.count ?? 0 }

    /// The next frame that is newer than the last one given.
    ///
    /// - Throws: ``ClientError/refused(_:)`` when the rendition can't be made, ``ClientError/silent(_:)`` as asked for.
    public func next() async throws(ClientError) -> Frame {
        while true {
            let raw = try await mailbox.next()
            let ring = last.withLock(\.ring)
            let found: Frame?
            do throws(ClientError) {
                found = try raw.frame(ring)
            } catch {
                // The worker, or the machine, has no memory for a ring. Whatever else is wrong will be told again.
                guard ring != nil, error.reason == .internalError else { throw error }
                fallBack()
                continue
            }
            guard var frame = found else {
                if ring?.isHopeless == true { fallBack() }
                continue
            }
            frame.lost = last.withLock { last in
                defer { (last.stream, last.sequence) = (frame.header.stream, frame.header.sequence) }
                // A new stream counts anew: what was lost at its beginning can't be known.
                guard last.stream == frame.header.stream, frame.header.sequence > last.sequence else { return 0 }
                return frame.header.sequence - last.sequence - 1
            }
            return frame
        }
    }

    // From now on the pixels come along. That topic has a count of its own.
    private func fallBack() {
        let wasShared = last.withLock { last in
            defer { last = Last() }
            return last.ring != nil
        }
        guard wasShared else { return }
        ring?.close()
        client.replaceTopic(
            number, MediaTopic(.buffer, device: device, renditionText: rendition).text,
            by: MediaTopic(.frame, device: device, renditionText: rendition).text)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let frames: Frames

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> Frame? {
            try await frames.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(frames: self) }
}
