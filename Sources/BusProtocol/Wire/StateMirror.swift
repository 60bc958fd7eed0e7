public import JSON

/// A client's copy of the bus's state: a snapshot and the changes after it, with every loss noticed.
///
/// A value without I/O. Its owner subscribes, feeds it what arrives, and whenever ``needsSnapshot`` is true calls
/// `bus.snapshot` and passes the result to ``adopt(snapshot:)``. State that arrives in between is kept, within a bound,
/// and applied then.
public struct StateMirror: Sendable {
    /// What a message meant.
    public enum Action: Hashable, Sendable {
        /// The value of this topic is new, or gone.
        case applied
        /// Not newer than what is known, or nothing that concerns state.
        case ignored
        /// A snapshot is awaited: looked at again when it is there.
        case kept
        /// An event. `missed`: at least one before it on the same topic was lost.
        case event(missed: Bool)
        /// The copy turned out to be incomplete or of another epoch: ``needsSnapshot`` is true from now on.
        case resynchronize
        /// A heartbeat that tells of nothing unknown.
        case inStep
    }

    /// Messages that are kept while a snapshot is awaited. More of them cost one more snapshot.
    public static let maxKept = 1024

    // Ids of locks come and go for as long as a client runs.
    private static let maxGone = 256

    /// What was subscribed to: byte prefixes of topics.
    public let subscriptions: [String]
    /// Values by topic.
    public private(set) var values: [String: JSONValue] = [:]
    /// The epoch of ``values``; nil before the first snapshot.
    public private(set) var epoch: String?
    /// True until a snapshot is adopted, and again when one is needed.
    public private(set) var needsSnapshot = true

    // That of the last message, until a snapshot says the same.
    private var newestEpoch: String?
    // Everything up to here was in the snapshot, on whatever topic.
    private var floor: Int64 = 0
    // The newest sequence applied, by topic, and by each prefix of it that ends in `/`.
    private var last: [String: Int64] = [:]
    private var kept: [(topic: String, message: JSONValue)] = []
    private var keptTooMany = false
    private var gone: [String] = []
    private var events = EventContinuity()

    public init(subscriptions: [String]) { self.subscriptions = subscriptions }

    /// Takes a message from the events socket.
    public mutating func receive(topic: String, message: JSONValue) -> Action {
        guard let messageEpoch = message["epoch"]?.string else { return .ignored }
        newestEpoch = messageEpoch
        if topic == Topic.heartbeat.text { return heartbeat(messageEpoch, message["latest"]?.object ?? [:]) }
        guard let sequence = message["sequence"]?.integer else { return .ignored }
        let previous = message["previous"]?.integer ?? 0
        if topic.hasPrefix("event/") {
            if epoch != nil, messageEpoch != epoch { needsSnapshot = true }
            let missed = events.receive(topic, epoch: messageEpoch, sequence: sequence, previous: previous)
            return missed.map(Action.event(missed:)) ?? .ignored
        }
        guard topic.hasPrefix("state/") else { return .ignored }
        if needsSnapshot {
            keep(topic, message)
            return .kept
        }
        guard messageEpoch == epoch else { return resynchronize(topic, message) }
        let known = max(floor, last[topic] ?? 0)
        guard sequence > known else { return .ignored }
        guard previous <= known else { return resynchronize(topic, message) }
        apply(topic, sequence, message["value"] ?? .null)
        return .applied
    }

    /// Takes the result of `bus.snapshot`, and then the state that was kept.
    ///
    /// - Returns: false if it could not be used; ``needsSnapshot`` is still true then.
    public mutating func adopt(snapshot: JSONValue) -> Bool {
        guard let snapshotEpoch = snapshot["epoch"]?.string, let sequence = snapshot["sequence"]?.integer,
            let state = snapshot["state"]?.object
        else { return false }
        // The bus may have been started again between the request and now: the last message tells. If it is the
        // snapshot that is newer, the next one is believed.
        let isCurrent = newestEpoch.map { $0 == snapshotEpoch } ?? true
        let (waiting, isComplete) = (kept, !keptTooMany)
        kept = []
        keptTooMany = false
        newestEpoch = nil
        guard isComplete, isCurrent else {
            needsSnapshot = true
            return false
        }
        epoch = snapshotEpoch
        floor = sequence
        last = [:]
        gone = []
        values = state.filter { topic, _ in subscriptions.contains { topic.hasPrefix($0) } }
        needsSnapshot = false
        events.start(epoch: snapshotEpoch, at: sequence)
        for (topic, message) in waiting where message["epoch"]?.string == snapshotEpoch {
            _ = receive(topic: topic, message: message)
        }
        return !needsSnapshot
    }

    private mutating func apply(_ topic: String, _ sequence: Int64, _ value: JSONValue) {
        var prefix = ""
        for segment in topic.split(separator: "/") {
            prefix += "\(segment)/"
            last[prefix] = sequence
        }
        values[topic] = value.isNull ? Optional.none : value
        if value.isNull { gone.append(topic) }
        // A topic that comes back starts with `previous` 0, so the oldest of those that are gone can be forgotten.
        if gone.count > Self.maxGone {
            let oldest = gone.removeFirst()
            if values[oldest] == nil { last[oldest] = nil }
        }
    }

    private mutating func heartbeat(_ messageEpoch: String, _ latest: [String: JSONValue]) -> Action {
        if needsSnapshot { return .ignored }
        guard messageEpoch == epoch else {
            needsSnapshot = true
            return .resynchronize
        }
        let isBehind = latest.contains { prefix, sequence in
            prefix.hasPrefix("state/") && subscriptions.contains { prefix.hasPrefix($0) }
                && (sequence.integer ?? 0) > max(floor, last[prefix] ?? 0)
        }
        guard isBehind else { return .inStep }
        needsSnapshot = true
        return .resynchronize
    }

    private mutating func keep(_ topic: String, _ message: JSONValue) {
        if kept.count < Self.maxKept { kept.append((topic, message)) } else { keptTooMany = true }
    }

    private mutating func resynchronize(_ topic: String, _ message: JSONValue) -> Action {
        needsSnapshot = true
        keep(topic, message)
        return .resynchronize
    }
}
