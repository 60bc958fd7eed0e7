import JSON

/// Drops state that was already shown: the bus publishes state again to all clients when one subscribes to it.
struct RepeatedStateFilter {
    private var epoch: String?
    // Topics that are gone are forgotten: ids of locks come and go for as long as one watches.
    private var newest: [String: Int64] = [:]

    /// - Returns: false for state that is not newer than what was there before on its topic, in the same run of the
    ///   bus.
    mutating func isNews(topic: String, _ message: JSONValue) -> Bool {
        guard topic.hasPrefix("state/"), let sequence = message["sequence"]?.integer else { return true }
        if let epoch = message["epoch"]?.string, epoch != self.epoch {
            self.epoch = epoch
            newest = [:]
        }
        guard sequence > newest[topic] ?? .min else { return false }
        newest[topic] = message["value"].map(\.isNull) ?? true ? nil : sequence
        return true
    }
}
