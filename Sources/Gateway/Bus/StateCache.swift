import JSON

/// The newest message of each state topic, for later subscribers.
struct StateCache {
    private struct Kept {
        var sequence: Int64
        var body: [UInt8]
    }

    /// Topics that are kept; beyond that, those who come later learn by `bus.snapshot` alone.
    static let maximum = 8192

    /// Of the bus that it is of; nil: none has been heard.
    private(set) var epoch: String?
    private var kept: [String: Kept] = [:]

    /// Takes a message of the events socket in.
    mutating func take(_ topic: String, _ body: [UInt8]) {
        let isState = topic.hasPrefix("state/")
        guard isState || topic == "heartbeat/", let message = try? JSONValue(parsing: body),
            let epoch = message["epoch"]?.string
        else { return }
        if epoch != self.epoch {
            self.epoch = epoch
            kept = [:]
        }
        guard isState, let sequence = message["sequence"]?.integer else { return }
        if message["value"]?.isNull != false {
            kept[topic] = nil
        } else if kept[topic] != nil || kept.count < Self.maximum, kept[topic].map({ $0.sequence <= sequence }) ?? true
        {
            kept[topic] = Kept(sequence: sequence, body: body)
        }
    }

    /// Whether that heartbeat counts a newer message of a topic than the one that is kept: that one was lost.
    func misses(_ topic: String, by heartbeat: JSONValue) -> Bool {
        guard heartbeat["epoch"]?.string == epoch, let latest = heartbeat["latest"]?[topic]?.integer else {
            return false
        }
        return latest > kept[topic]?.sequence ?? 0
    }

    /// Whether there is state of that topic.
    func has(_ topic: String) -> Bool { kept[topic] != nil }

    /// The newest message of that topic; nil: there is no state of it.
    func body(of topic: String) -> [UInt8]? { kept[topic]?.body }

    /// What a subscription to that beginning of topics sees, in the order in which it came about.
    func current(matching prefix: String) -> [(topic: String, body: [UInt8])] {
        let found = kept.filter { $0.key.utf8.starts(with: prefix.utf8) }
        return found.sorted { $0.value.sequence < $1.value.sequence }.map { ($0.key, $0.value.body) }
    }
}
