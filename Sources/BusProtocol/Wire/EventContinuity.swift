/// Tells whether events were lost, topic by topic, by their `sequence` and `previous`. There is no getting them back.
struct EventContinuity: Hashable, Sendable {
    /// Topics remembered at most: ids of locks come and go.
    static let maxTopics = 1024

    private var epoch: String?
    // On a topic not seen yet, what came up to here is not missed; nil: nothing is known of what came before.
    private var floor: Int64?
    private var last: [String: Int64] = [:]

    /// From a snapshot, or a first contact: what came up to there is not missed.
    mutating func start(epoch: String, at sequence: Int64) {
        if epoch != self.epoch {
            last = [:]
            floor = nil
        }
        self.epoch = epoch
        floor = max(sequence, floor ?? 0)
    }

    /// - Returns: true if an event before this one was lost; nil if this one is not new.
    mutating func receive(_ topic: String, epoch: String, sequence: Int64, previous: Int64) -> Bool? {
        if epoch != self.epoch {
            // A later epoch begins at 0, so what it had before this is missed; of the first one seen nobody knows.
            floor = self.epoch == nil ? nil : 0
            self.epoch = epoch
            last = [:]
        }
        let known = last[topic]
        if let known, sequence <= known { return nil }
        if known == nil, last.count >= Self.maxTopics {
            last = [:]
            floor = sequence
        }
        last[topic] = sequence
        guard let base = known ?? floor else { return false }
        return previous > base
    }
}
