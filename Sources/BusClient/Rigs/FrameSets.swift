import BusProtocol
import JSON
import Synchronization

/// The matched sets of a rig, the newest first: a late reader gets the current set, and ``FrameSet/lost`` counts the
/// sets that were left out.
///
/// It ends only by an error. The subscription lasts as long as this value lives.
public final class FrameSets: AsyncSequence, Sendable {
    public typealias Element = FrameSet
    public typealias Failure = ClientError

    /// The rig's name.
    public let rig: String
    /// As it was asked for.
    public let rendition: String
    private let client: Client
    private let number: UInt64
    private let mailbox: Mailbox<RawSet>
    private let continuity = Mutex(FrameContinuity())

    init(_ client: Client, rig: String, rendition: String, number: UInt64, mailbox: Mailbox<RawSet>) {
        self.client = client
        self.rig = rig
        self.rendition = rendition
        self.number = number
        self.mailbox = mailbox
    }

    deinit { client.endSubscription(number) }

    /// Ends the subscription; who waits gets ``ClientError/closed``.
    public func close() { client.endSubscription(number) }

    /// The next set, or late frame, that is newer than what was given last.
    ///
    /// - Throws: ``ClientError/refused(_:)`` when there can be no sets now, or with `unauthorized` when nothing came
    ///   because the permission was taken back; ``ClientError/silent(_:)`` as asked for.
    public func next() async throws(ClientError) -> FrameSet {
        let raw: RawSet
        do throws(ClientError) {
            raw = try await mailbox.next()
        } catch {
            if case .silent = error, let refusal = await client.lackOfPermission(waits: false) { throw refusal }
            throw error
        }
        var set = try raw.set()
        let (stream, sequence) = (set.header.stream, set.header.sequence)
        set.lost = continuity.withLock { $0.receive(stream: stream, sequence: sequence, isKeyframe: nil) } ?? 0
        return set
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let sets: FrameSets

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> FrameSet? {
            try await sets.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(sets: self) }
}

extension Client {
    /// Subscribes to the matched sets of a rig; on return the subscription is in force.
    ///
    /// - Parameters:
    ///   - rig: its name.
    ///   - rendition: as for ``frames(_:_:shared:newest:silence:timeout:)``, of all of its cameras. Of a format whose
    ///     frames build on one another (H.264) sets are of little use: those that are left out are missing for the
    ///     others.
    ///   - newest: how many sets and late frames are kept for a late reader; older ones are left out and counted.
    ///   - silence: ends with ``ClientError/silent(_:)`` when nothing comes for that long; nil: waits for ever.
    ///   - timeout: for the subscription itself.
    /// - Throws: ``ClientError/refused(_:)`` with `rigNotFound`, `unauthorized`, or `invalidParams` for what can't be a
    ///   topic.
    public func frameSets(
        _ rig: String, _ rendition: String? = nil, newest: Int = 2, silence: Duration? = nil,
        timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> FrameSets {
        let takesRaw = rendition != nil
        let rendition = rendition ?? place.rendition
        let topic = MediaTopic(.set, device: rig, renditionText: rendition)
        guard Topic.parse(Array(topic.text.utf8)) != nil else {
            throw .refused(
                DeviceID.isValid(rig)
                    ? .invalidParams("rendition", "'\(rendition)' is not a rendition")
                    : .invalidParams("rig", "'\(rig)' is not the name of a rig"))
        }
        let deadline = monotonic(after: timeout)
        let known = try await rigs(timeout: timeout).compactMap { $0["name"]?.string }
        guard known.contains(rig) else {
            let list = known.isEmpty ? "There are none." : "Known: \(known.joined(separator: ", "))."
            throw .refused(BusError(.rigNotFound, "There is no rig '\(rig)'. \(list)", ["rig": .string(rig)]))
        }
        // Who may not have its cameras is not let in, and told nothing there. Who has not asked yet does so by coming.
        if greeting.authorization["video"] != "authorized", let refusal = await lackOfPermission(waits: true) {
            throw refusal
        }
        let mailbox = Mailbox<RawSet>(capacity: newest)
        let plan = Subscription.Plan(
            source: .media(rig), topics: [topic.text], receiveHighWaterMark: max(2, newest),
            deadline: deadline, silence: silence?.clampedNanoseconds, heartbeatCounts: false, publisher: rig,
            place: place, takesRaw: takesRaw)
        let number: UInt64
        do throws(ClientError) {
            number = try await openSubscription(plan, mailboxFinish: mailbox.finish) { message in
                if let set = RawSet(message) { mailbox.put(set) }
                return .goOn
            }
        } catch {
            if case .silent = error, let refusal = await lackOfPermission(waits: false) { throw refusal }
            throw error
        }
        return FrameSets(self, rig: rig, rendition: rendition, number: number, mailbox: mailbox)
    }
}
