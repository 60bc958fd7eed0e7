public import JSON

/// What is published of the bus's state and of what happens, numbered so that a client notices every loss.
///
/// All state and events share one order (`sequence`), which begins anew with each epoch. `previous` is the sequence of
/// the message before on the same topic, and 0 where there was none, or where it isn't remembered: a state topic whose
/// value is gone is forgotten, and of event topics the newest are remembered.
public struct StateStore: Sendable {
    /// A message to be sent on a topic of the events socket.
    public struct Publication: Hashable, Sendable {
        /// Ends in `/`.
        public var topic: String
        /// {epoch, sequence, previous, value} or {epoch, sequence, previous, event, …}
        public var message: JSONValue
    }

    /// Event topics whose last sequence is remembered.
    static let rememberedEvents = 1024
    /// Topics that ``latest`` tells one by one.
    static let toldTopics = 64
    /// Prefixes that are counted for ``latest``.
    static let countedPrefixes = 64

    /// The random name of this run of the coordinator.
    public let epoch: String
    /// That of the newest message; 0 before the first.
    public private(set) var sequence: UInt64 = 0

    private struct Entry: Sendable {
        var value: JSONValue
        var sequence: UInt64
        var previous: UInt64
    }
    private var state: [String: Entry] = [:]
    private var events: [String: UInt64] = [:]
    private var newest: [String: UInt64] = [:]

    /// The topics that went last, the oldest first.
    private var gone: [(topic: String, sequence: UInt64)] = []
    static let toldGone = 32

    public init(epoch: String) { self.epoch = epoch }

    /// Takes a value, and says what to publish; nil if it is what it was.
    ///
    /// - Parameters:
    ///   - path: `state/device/front`, with or without the final `/`.
    ///   - value: nil or null: it is gone.
    public mutating func set(_ path: String, _ value: JSONValue?) -> Publication? {
        let topic = Self.topic(path)
        let before = state[topic]
        let value = value.flatMap { $0.isNull ? .none : .some($0) }
        guard value != before?.value else { return nil }
        advance(topic)
        let entry = Entry(value: value ?? .null, sequence: sequence, previous: before?.sequence ?? 0)
        state[topic] = value == nil ? nil : entry
        remember(topic, isGone: value == nil)
        return publication(topic, entry)
    }

    private mutating func remember(_ topic: String, isGone: Bool) {
        gone.removeAll { $0.topic == topic }
        guard isGone else { return }
        gone.append((topic, sequence))
        if gone.count > Self.toldGone { gone.removeFirst() }
    }

    /// Something happened.
    ///
    /// - Parameters:
    ///   - path: `event/device/front`, with or without the final `/`.
    ///   - members: what belongs to the event; `epoch`, `sequence`, `previous` and `event` are not among them.
    public mutating func event(_ path: String, name: String, members: [String: JSONValue] = [:]) -> Publication {
        let topic = Self.topic(path)
        advance(topic)
        let message = members.merging(head(sequence: sequence, previous: events[topic] ?? 0)) { _, ours in ours }
        events[topic] = sequence
        if events.count >= 2 * Self.rememberedEvents {
            // Every so often, so that it costs little for each.
            let oldest = events.values.sorted()[events.count - Self.rememberedEvents]
            events = events.filter { $0.value >= oldest }
        }
        return Publication(
            topic: topic, message: .object(message.merging(["event": .string(name)]) { _, ours in ours }))
    }

    /// {epoch, sequence, state: {topic: value}} of all topics that begin with these bytes.
    public func snapshot(prefix: String = "") -> JSONValue {
        let values = state.filter { Self.matches($0.key, prefix) }.mapValues(\.value)
        return .object(["epoch": .string(epoch), "sequence": JSONValue(sequence), "state": .object(values)])
    }

    /// The present values of topics that begin with these bytes, as they were published, the oldest first.
    ///
    /// - Parameter isWanted: whether the value of that topic is wanted. Called once for each topic, in any order.
    public func current(
        matching subscription: String, where isWanted: (_ topic: String) -> Bool = { _ in true }
    ) -> [Publication] {
        state.filter { Self.matches($0.key, subscription) && isWanted($0.key) }
            .sorted { $0.value.sequence < $1.value.sequence }.map { publication($0.key, $0.value) }
    }

    /// For the heartbeat: the newest sequence under prefixes of topics, so that a client notices when the last message
    /// was lost.
    ///
    /// Told are the first one and the first two segments (`state/`, `state/device/`), and the topics that were set last
    /// or went last, whole.
    public var latest: JSONValue {
        var told = newest
        if state.count <= Self.toldTopics {
            for (topic, entry) in state { told[topic] = entry.sequence }
        } else {
            let newest = state.sorted { $0.value.sequence > $1.value.sequence }.prefix(Self.toldTopics)
            for (topic, entry) in newest { told[topic] = entry.sequence }
        }
        // Without these the end of a topic, when lost, would show in nothing once another topic has had a message.
        for (topic, sequence) in gone { told[topic] = sequence }
        return .object(told.mapValues { JSONValue($0) })
    }

    private mutating func advance(_ topic: String) {
        sequence += 1
        var slashes = 0
        for index in topic.utf8.indices where topic.utf8[index] == UInt8(ascii: "/") {
            let prefix = String(topic[...index])
            if newest[prefix] != nil || newest.count < Self.countedPrefixes { newest[prefix] = sequence }
            slashes += 1
            if slashes == 2 { break }
        }
    }

    private func head(sequence: UInt64, previous: UInt64) -> [String: JSONValue] {
        ["epoch": .string(epoch), "sequence": JSONValue(sequence), "previous": JSONValue(previous)]
    }

    private func publication(_ topic: String, _ entry: Entry) -> Publication {
        var message = head(sequence: entry.sequence, previous: entry.previous)
        message["value"] = entry.value
        return Publication(topic: topic, message: .object(message))
    }

    private static func topic(_ path: String) -> String { path.utf8.last == UInt8(ascii: "/") ? path : path + "/" }

    // By bytes, as ZeroMQ matches subscriptions; String's own comparison takes different spellings of a letter for one.
    private static func matches(_ topic: String, _ prefix: String) -> Bool { topic.utf8.starts(with: prefix.utf8) }
}
