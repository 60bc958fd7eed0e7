import BusProtocol
import Synchronization

/// The frames of one topic, the newest first: a late reader gets the current frame, and ``Frame/lost`` counts the
/// frames that were left out. `Protocol/spec/frames.md` defines lost, late and old.
///
/// Ends by an error only. The subscription lasts as long as this value lives.
public final class Frames: AsyncSequence, Sendable {
    public typealias Element = Frame
    public typealias Failure = ClientError

    private struct State {
        var continuity = FrameContinuity()
        /// Of the frames that were given, those that turned out to have been overwritten.
        var late: UInt64 = 0
        /// Where the pixels are; nil: they come with the messages.
        var ring: RingLink?
    }

    /// The device's id.
    public let device: String
    /// As it was asked for.
    public let rendition: String
    private let client: Client
    private let media: String
    private let number: UInt64
    private let mailbox: Mailbox<RawFrame>
    private let ring: RingLink?
    private let state: Mutex<State>

    init(
        _ client: Client, device: String, media: String, rendition: String, number: UInt64, mailbox: Mailbox<RawFrame>,
        ring: RingLink?
    ) {
        self.client = client
        self.device = device
        self.media = media
        self.rendition = rendition
        self.number = number
        self.mailbox = mailbox
        self.ring = ring
        state = Mutex(State(ring: ring))
    }

    deinit { client.endSubscription(number) }

    /// Ends the subscription; who waits gets ``ClientError/closed``.
    public func close() {
        client.endSubscription(number)
        ring?.close()
    }

    /// Whether frames come from shared memory: as it was asked for, as long as that can be had.
    public var areShared: Bool { state.withLock { $0.ring != nil } }

    /// Shared frames that were overwritten before they were used, or while they were. Those of the first kind count as
    /// ``Frame/lost`` too.
    public var late: UInt64 { ring?.late.count ?? 0 }

    /// The next frame that is newer than the last one given, and can be used: of a format whose frames build on one
    /// another a key frame after each loss.
    ///
    /// - Throws: ``ClientError/refused(_:)`` when the rendition can't be made, or with `unauthorized` when nothing came
    ///   because the permission was taken back; ``ClientError/silent(_:)`` as asked for.
    public func next() async throws(ClientError) -> Frame {
        while true {
            let raw: RawFrame
            do throws(ClientError) {
                raw = try await mailbox.next()
            } catch {
                throw await explained(error)
            }
            if let frame = try usable(raw) { return frame }
        }
    }

    /// The same of what has come by now; nil: nothing yet.
    func poll() async throws(ClientError) -> Frame? {
        while true {
            let raw: RawFrame?
            do throws(ClientError) {
                raw = try mailbox.poll()
            } catch {
                throw await explained(error)
            }
            guard let raw else { return nil }
            if let frame = try usable(raw) { return frame }
        }
    }

    private func explained(_ error: ClientError) async -> ClientError {
        if case .silent = error, let refusal = await client.lackOfPermission(media, waits: false) { return refusal }
        return error
    }

    /// nil: it can't be used, and one that comes after it may.
    private func usable(_ raw: RawFrame) throws(ClientError) -> Frame? {
        let ring = state.withLock(\.ring)
        let found: Frame?
        do throws(ClientError) {
            found = try raw.frame(ring)
        } catch {
            // The worker, or the machine, has no memory for a ring.
            guard ring != nil, case .refused(let refusal) = error, refusal.isWithoutRing else { throw error }
            fallBack()
            return nil
        }
        guard var frame = found else {
            if ring?.isHopeless == true { fallBack() }
            return nil
        }
        let late = self.late
        let lost = state.withLock { state in
            // What came before could not be used: nor can what builds on it.
            if late != state.late { state.continuity.interrupt() }
            state.late = late
            return state.continuity.receive(
                stream: frame.header.stream, sequence: frame.header.sequence, isKeyframe: frame.header.keyframe)
        }
        guard let lost else { return nil }
        frame.lost = lost
        return frame
    }

    // From now on the pixels come along. That topic has a count of its own.
    private func fallBack() {
        let wasShared = state.withLock { state in
            defer { state = State() }
            return state.ring != nil
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
