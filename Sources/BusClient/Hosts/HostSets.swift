import BusProtocol
import Synchronization

/// Sets of frames of several machines.
///
/// Ends by an error only. The subscriptions last as long as this value lives.
public final class HostSets: AsyncSequence, Sendable {
    public typealias Element = HostSet
    public typealias Failure = BusesError

    private struct State: Sendable {
        var matcher: RealtimeMatcher<Frame>
        var waiting: [HostSet] = []
        var clocks: [String: HostClock] = [:]
        /// Until when these are believed; nil: nobody was asked.
        var believedUntil: ContinuousClock.Instant?
        /// Devices that have given a frame.
        var giving: Set<String> = []
    }

    private struct Told: Sendable {
        var host: String
        var clock: HostClock?
    }

    private let frames: HostFrames
    /// The buses whose devices these are.
    private let members: [Buses.Member]
    private let state: Mutex<State>

    /// How long what a machine says of its clock is believed, and how long it has to say it.
    private static let belief = Duration.seconds(30)
    private static let asking = Duration.seconds(2)
    /// A frame that is a second late is not of the present any more, nanoseconds.
    static let patience: Int64 = 1_000_000_000
    /// Why a device gives no frames for now, and will again.
    private static let passing: Set<BusError.Reason> = [
        .deviceDisconnected, .deviceInUse, .workerCrashed, .interrupted, .internalError, .limitExceeded,
    ]

    init(_ frames: HostFrames, of members: [Buses.Member], _ matcher: RealtimeMatcher<Frame>) {
        self.frames = frames
        self.members = members
        state = Mutex(State(matcher: matcher))
    }

    /// The devices, each `host/device`; the first leads.
    public var names: [String] { frames.names }

    /// Ends the subscriptions; who waits gets ``ClientError/closed``.
    public func close() { frames.close() }

    /// The next set.
    ///
    /// - Throws: what ``Frames/next()`` of a device does, with its host; but not that one gives no frames for a while
    ///   that has given some.
    public func next() async throws(BusesError) -> HostSet {
        while true {
            if let set = takeWaiting() { return set }
            let arrival = try await frames.nextArrival()
            switch arrival.outcome {
            case .success(let frame): await take(frame, of: arrival.place.name)
            case .failure(let error):
                guard willGiveAgain(arrival.place.name, error) else {
                    throw .at(host: arrival.place.member.host, error)
                }
            }
        }
    }

    private func takeWaiting() -> HostSet? {
        state.withLock { state in state.waiting.isEmpty ? nil : state.waiting.removeFirst() }
    }

    // Who has not given a single frame is asked for why.
    private func willGiveAgain(_ name: String, _ error: ClientError) -> Bool {
        guard let reason = error.reason, Self.passing.contains(reason) else { return false }
        return state.withLock { $0.giving.contains(name) }
    }

    private func take(_ frame: Frame, of name: String) async {
        let matches = state.withLock { state in
            state.giving.insert(name)
            return state.matcher.receive(name, at: frame.header.realtime, frame)
        }
        if matches.isEmpty { return }
        await askForClocks()
        state.withLock { state in
            for match in matches { state.waiting.append(Self.set(match, state.clocks)) }
        }
    }

    private static func set(_ match: RealtimeMatcher<Frame>.Match, _ clocks: [String: HostClock]) -> HostSet {
        let hosts = Set(match.parts.map { String($0.name.prefix { $0 != "/" }) }).sorted()
        return HostSet(
            parts: match.parts.map { HostSet.Part(name: $0.name, frame: $0.element, offset: $0.offset) },
            missing: match.missing, uncertainty: HostClock.uncertainty(hosts.map { clocks[$0] }),
            unsure: hosts.filter { clocks[$0]?.error == nil })
    }

    private func askForClocks() async {
        let now = ContinuousClock.now
        let areBelieved = state.withLock { state in
            if let until = state.believedUntil, now < until { return true }
            state.believedUntil = now + Self.belief
            return false
        }
        if areBelieved { return }
        let clocks = await withTaskGroup(of: Told.self, returning: [String: HostClock].self) { group in
            for member in members {
                group.addTask {
                    let clock = try? await member.client.clock(timeout: Self.asking)
                    return Told(host: member.host, clock: clock)
                }
            }
            var found: [String: HostClock] = [:]
            for await told in group { found[told.host] = told.clock }
            return found
        }
        let isCancelled = Task.isCancelled
        state.withLock { state in
            state.clocks = clocks
            // Nobody could answer then.
            if isCancelled { state.believedUntil = nil }
        }
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let sets: HostSets

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(BusesError) -> HostSet? {
            try await sets.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(sets: self) }
}

extension Buses {
    /// Subscribes to frames of several machines that were taken at the same time, by `timestamp.realtime`; on return
    /// the subscriptions are in force.
    ///
    /// No two machines' clocks are the same: ``HostSet/uncertainty`` says how far off they may be, as NTP or PTP there
    /// tells the kernel. Frames of a format whose frames build on one another (H.264) are of little use in sets.
    ///
    /// - Parameters:
    ///   - names: of two devices at least, each `host/device`; the first leads: each of its frames makes a set.
    ///   - rendition: as for ``Client/frames(_:_:shared:newest:silence:timeout:)``, of all of them.
    ///   - tolerance: how far from the lead's a frame may be.
    ///   - silence: of each device.
    public func frameSets(
        _ names: [String], _ rendition: String? = nil, tolerance: Duration = .milliseconds(20),
        silence: Duration? = nil, timeout: Duration = Client.defaultTimeout
    ) async throws(BusesError) -> HostSets {
        let places = try places(names, least: 2)
        guard
            let matcher = RealtimeMatcher<Frame>(
                places.map(\.name), tolerance: tolerance.clampedNanoseconds, patience: HostSets.patience)
        else { throw .tooFewNames(least: 2) }
        let frames = try await frames(places.map(\.name), rendition, silence: silence, timeout: timeout)
        let hosts = Set(places.map(\.member.host))
        return HostSets(frames, of: members.filter { hosts.contains($0.host) }, matcher)
    }
}
