public import BusProtocol
import JSON
import Synchronization

/// The sound of a microphone, chunk by chunk in its order. A reader that is too late loses chunks: ``SoundChunk/lost``.
///
/// It ends only by an error. The subscription lasts as long as this value lives.
public final class Sounds: AsyncSequence, Sendable {
    public typealias Element = SoundChunk
    public typealias Failure = ClientError

    /// The device's id.
    public let device: String
    private let client: Client
    private let number: UInt64
    private let mailbox: Mailbox<RawSound>
    private let continuity = Mutex(SoundContinuity())

    init(_ client: Client, device: String, number: UInt64, mailbox: Mailbox<RawSound>) {
        self.client = client
        self.device = device
        self.number = number
        self.mailbox = mailbox
    }

    deinit { client.endSubscription(number) }

    /// Ends the subscription; who waits gets ``ClientError/closed``.
    public func close() { client.endSubscription(number) }

    /// The next piece.
    ///
    /// - Throws: ``ClientError/refused(_:)`` when there is no sound now, or with `unauthorized` when nothing came
    ///   because the permission was taken back; ``ClientError/silent(_:)`` as asked for.
    public func next() async throws(ClientError) -> SoundChunk {
        while true {
            let raw: RawSound
            do throws(ClientError) {
                raw = try await mailbox.next()
            } catch {
                if case .silent = error, let refusal = await client.lackOfPermission("audio", waits: false) {
                    throw refusal
                }
                throw error
            }
            var chunk = try raw.chunk()
            let header = chunk.header
            let lost = continuity.withLock {
                $0.receive(
                    stream: header.stream, sequence: header.sequence, firstFrame: header.firstFrame,
                    frames: header.frames)
            }
            guard let lost else { continue }
            chunk.lost = lost
            return chunk
        }
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let sounds: Sounds

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> SoundChunk? {
            try await sounds.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(sounds: self) }
}

/// The level of a microphone, ten times a second, the newest first.
///
/// It ends only by an error. The subscription lasts as long as this value lives.
public final class SoundLevels: AsyncSequence, Sendable {
    public typealias Element = SoundLevel
    public typealias Failure = ClientError

    /// The device's id.
    public let device: String
    private let client: Client
    private let number: UInt64
    private let mailbox: Mailbox<JSONValue>

    init(_ client: Client, device: String, number: UInt64, mailbox: Mailbox<JSONValue>) {
        self.client = client
        self.device = device
        self.number = number
        self.mailbox = mailbox
    }

    deinit { client.endSubscription(number) }

    /// Ends the subscription; who waits gets ``ClientError/closed``.
    public func close() { client.endSubscription(number) }

    /// The next level.
    ///
    /// - Throws: as ``Sounds/next()``.
    public func next() async throws(ClientError) -> SoundLevel {
        let json: JSONValue
        do throws(ClientError) {
            json = try await mailbox.next()
        } catch {
            if case .silent = error, let refusal = await client.lackOfPermission("audio", waits: false) {
                throw refusal
            }
            throw error
        }
        do throws(BusError) {
            return try SoundLevel(json)
        } catch {
            throw .refused(error)
        }
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let levels: SoundLevels

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> SoundLevel? {
            try await levels.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(levels: self) }
}
