import BusProtocol

/// Which renditions of one device are to be made, for which topics, which wait for a place, and which can't be had.
struct WantedRenditions<Form: Hashable> {
    typealias Subscribed = SubscriptionTable.Subscribed
    typealias Change = SubscriptionTable.Change

    /// A rendition, and the topics that ask for it: one per spelling.
    struct Wanted: Hashable {
        let rendition: Form
        var topics: [Subscribed]
        /// Somebody has a connection for rings of it.
        var hasRing = false

        var isEmpty: Bool { topics.isEmpty && !hasRing }
        /// Somebody wants to know where it lies in a ring, or has a connection for it.
        var needsRing: Bool { hasRing || topics.contains { $0.kind == .buffer } }
    }

    private struct Refusal {
        let number: UInt64
        let error: BusError
        /// nil: it could not be made in any case. Otherwise it waits for a place.
        let rendition: Form?
    }

    private let maximumRenditions: Int
    private let maximumTopics: Int
    private var lastNumber: UInt64 = 0
    private var refusals: [Subscribed: Refusal] = [:]
    /// What is to be made, in the order in which it was asked for.
    private(set) var wanted: [Wanted] = []
    /// Subscriptions that were ignored because there are too many.
    private(set) var ignored: UInt64 = 0

    /// - Parameters:
    ///   - maximumRenditions: distinct renditions that are made at the same time.
    ///   - maximumTopics: distinct topics that are remembered.
    init(maximumRenditions: Int, maximumTopics: Int) {
        self.maximumRenditions = maximumRenditions
        self.maximumTopics = maximumTopics
    }

    /// Topics that are remembered.
    var count: Int { wanted.reduce(refusals.count) { $0 + $1.topics.count } }

    /// Topics that get an error instead.
    var refused: [(topic: Subscribed, error: BusError)] { refusals.map { ($0.key, $0.value.error) } }

    /// Why the topic gets an error, if so.
    func refusal(of subscribed: Subscribed) -> (topic: Subscribed, error: BusError)? {
        refusals[subscribed].map { (subscribed, $0.error) }
    }

    /// Somebody has subscribed, perhaps not as the first one.
    ///
    /// - Parameter rendition: what it asks for, or why it can't be had.
    mutating func add(_ subscribed: Subscribed, _ rendition: Result<Form, BusError>) -> Change {
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

    /// The last subscriber of the topic has gone.
    mutating func remove(_ subscribed: Subscribed) -> Change {
        if refusals.removeValue(forKey: subscribed) != nil { return .forgotten }
        guard let index = wanted.firstIndex(where: { $0.topics.contains(subscribed) }) else { return .none }
        wanted[index].topics.removeAll { $0 == subscribed }
        removeIfEmpty(index)
        return .wanted
    }

    /// Somebody wants rings of a rendition, perhaps not as the first one.
    mutating func addRing(_ rendition: Form) throws(BusError) {
        if let index = wanted.firstIndex(where: { $0.rendition == rendition }) {
            wanted[index].hasRing = true
        } else {
            guard wanted.count < maximumRenditions else { throw tooMany }
            wanted.append(Wanted(rendition: rendition, topics: [], hasRing: true))
        }
    }

    /// The last one who wanted rings of it has gone.
    mutating func removeRing(_ rendition: Form) {
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

    private mutating func refuse(_ subscribed: Subscribed, _ error: BusError, waiting rendition: Form?) -> Change {
        lastNumber += 1
        refusals[subscribed] = Refusal(number: lastNumber, error: error, rendition: rendition)
        return .refused(subscribed, error)
    }

    // A place has become free: for the rendition that has waited longest, and all spellings of it.
    private mutating func admitNext() {
        let waiting = refusals.filter { $0.value.rendition != nil }.sorted { $0.value.number < $1.value.number }
        guard let rendition = waiting.first?.value.rendition else { return }
        let topics = waiting.filter { $0.value.rendition == rendition }.map(\.key)
        for topic in topics { refusals[topic] = nil }
        wanted.append(Wanted(rendition: rendition, topics: topics))
    }
}
