package import BusProtocol

/// The renditions of one device that are to be made, with their topics; those that wait for a place; and those that are
/// refused.
package struct RenditionTable<Form: Hashable> {
    /// A rendition and its topics: one topic per spelling.
    package struct Wanted: Hashable {
        package let rendition: Form
        package var topics: [SubscribedTopic]
        /// At least one reader has a connection for its rings.
        package var hasRing = false

        package var isEmpty: Bool { topics.isEmpty && !hasRing }
        /// A subscriber wants its place in a ring, or a reader has a connection for its rings.
        package var needsRing: Bool { hasRing || topics.contains { $0.kind == .buffer } }
    }

    private struct Refusal {
        let number: UInt64
        let error: BusError
        /// nil: it cannot be made at all. If set, it waits for a place.
        let rendition: Form?
    }

    private let maximumRenditions: Int
    private let maximumTopics: Int
    private var lastNumber: UInt64 = 0
    private var refusals: [SubscribedTopic: Refusal] = [:]
    /// The renditions to be made, in the order of their first subscription.
    package private(set) var wanted: [Wanted] = []
    /// Subscriptions that were ignored because there are too many.
    package private(set) var ignored: UInt64 = 0

    /// - Parameters:
    ///   - maximumRenditions: distinct renditions that are made at the same time.
    ///   - maximumTopics: distinct topics that are remembered.
    package init(maximumRenditions: Int, maximumTopics: Int) {
        self.maximumRenditions = maximumRenditions
        self.maximumTopics = maximumTopics
    }

    /// Topics that are remembered.
    package var count: Int { wanted.reduce(refusals.count) { $0 + $1.topics.count } }

    /// Topics that get an error instead of frames.
    package var refused: [(topic: SubscribedTopic, error: BusError)] { refusals.map { ($0.key, $0.value.error) } }

    /// The error of a refused topic.
    package func refusal(of subscribed: SubscribedTopic) -> (topic: SubscribedTopic, error: BusError)? {
        refusals[subscribed].map { (subscribed, $0.error) }
    }

    /// Adds a subscription; the topic may have others already.
    ///
    /// - Parameter rendition: the topic's rendition, or why it cannot be made.
    package mutating func add(_ subscribed: SubscribedTopic, _ rendition: Result<Form, BusError>) -> SubscriptionChange
    {
        guard refusals[subscribed] == nil, !wanted.contains(where: { $0.topics.contains(subscribed) }) else {
            return .none
        }
        guard count < maximumTopics else {
            ignored += 1
            return .none
        }
        do throws(BusError) {
            let rendition = try rendition.get()
            if let index = wanted.firstIndex(where: { $0.rendition == rendition }) {
                wanted[index].topics.append(subscribed)
            } else if wanted.count < maximumRenditions {
                wanted.append(Wanted(rendition: rendition, topics: [subscribed]))
            } else {
                return refuse(subscribed, tooMany, waiting: rendition)
            }
            return .wanted
        } catch {
            return refuse(subscribed, error, waiting: nil)
        }
    }

    /// Removes a topic that has lost its last subscriber.
    package mutating func remove(_ subscribed: SubscribedTopic) -> SubscriptionChange {
        if refusals.removeValue(forKey: subscribed) != nil { return .forgotten }
        guard let index = wanted.firstIndex(where: { $0.topics.contains(subscribed) }) else { return .none }
        wanted[index].topics.removeAll { $0 == subscribed }
        removeIfEmpty(index)
        return .wanted
    }

    /// Adds a reader of a rendition's rings; the rendition may have others already.
    package mutating func addRing(_ rendition: Form) throws(BusError) {
        if let index = wanted.firstIndex(where: { $0.rendition == rendition }) {
            wanted[index].hasRing = true
        } else {
            guard wanted.count < maximumRenditions else { throw tooMany }
            wanted.append(Wanted(rendition: rendition, topics: [], hasRing: true))
        }
    }

    /// The rendition's rings have lost their last reader.
    package mutating func removeRing(_ rendition: Form) {
        guard let index = wanted.firstIndex(where: { $0.rendition == rendition }) else { return }
        wanted[index].hasRing = false
        removeIfEmpty(index)
    }

    private mutating func removeIfEmpty(_ index: Int) {
        guard wanted[index].isEmpty else { return }
        wanted.remove(at: index)
        admitNext()
    }

    private var tooMany: BusError {
        .limitExceeded(
            .renditions, "This device makes \(maximumRenditions) renditions at a time; subscribe to one of them.",
            maximum: maximumRenditions)
    }

    private mutating func refuse(_ subscribed: SubscribedTopic, _ error: BusError, waiting rendition: Form?)
        -> SubscriptionChange
    {
        lastNumber += 1
        refusals[subscribed] = Refusal(number: lastNumber, error: error, rendition: rendition)
        return .refused(subscribed, error)
    }

    // A place is free: the rendition that has waited longest gets it, with all its spellings.
    private mutating func admitNext() {
        let waiting = refusals.filter { $0.value.rendition != nil }.sorted { $0.value.number < $1.value.number }
        guard let rendition = waiting.first?.value.rendition else { return }
        let topics = waiting.filter { $0.value.rendition == rendition }.map(\.key)
        for topic in topics { refusals[topic] = nil }
        wanted.append(Wanted(rendition: rendition, topics: topics))
    }
}
