import BusProtocol
import JSON

/// What the subscribers of one device's media socket ask for: which renditions are to be made, for which topics, and what is refused.
struct SubscriptionTable {
    /// A complete topic that somebody is subscribed to.
    struct Subscribed: Hashable {
        /// As it was subscribed to, byte for byte.
        let topic: [UInt8]
        /// The rendition as it is spelled there.
        let text: String
        /// Whether the pixels are wanted with the header, or where they lie in a ring.
        var kind = MediaTopic.Kind.frame
    }

    /// A rendition, and the topics that ask for it: one per spelling.
    struct Wanted: Hashable {
        let rendition: Rendition
        var topics: [Subscribed]
        /// Somebody has a connection for rings of it.
        var hasRing = false

        var isEmpty: Bool { topics.isEmpty && !hasRing }
        /// Somebody wants to know where it lies in a ring, or has a connection for it.
        var needsRing: Bool { hasRing || topics.contains { $0.kind == .buffer } }
    }

    /// What a message from a subscriber means for the worker.
    enum Change: Equatable {
        /// Nothing has changed.
        case none
        /// The topic is to be published once: the subscriber's barrier.
        case acknowledge([UInt8])
        /// ``wanted`` has changed.
        case wanted
        /// The topic is new among ``refused``.
        case refused(Subscribed, BusError)
        /// A refused topic has gone.
        case forgotten
    }

    private struct Refusal {
        let number: UInt64
        let error: BusError
        /// nil: it could not be made in any case. Otherwise it waits for a place.
        let rendition: Rendition?
    }

    private let device: String
    /// What is published here.
    private let kinds: Set<MediaTopic.Kind>
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
    init(
        device: String, kinds: Set<MediaTopic.Kind> = [.frame, .buffer],
        maximumRenditions: Int = BusLimits.maxRenditions, maximumTopics: Int = 4096
    ) {
        self.device = device
        self.kinds = kinds
        self.maximumRenditions = maximumRenditions
        self.maximumTopics = maximumTopics
    }

    /// Topics that are remembered.
    var count: Int { wanted.reduce(refusals.count) { $0 + $1.topics.count } }

    /// Topics that get an error instead of frames.
    var refused: [(topic: Subscribed, error: BusError)] { refusals.map { ($0.key, $0.value.error) } }

    /// Why the topic gets an error instead of frames, if so.
    func refusal(of bytes: [UInt8]) -> (topic: Subscribed, error: BusError)? {
        guard case .media(let topic) = Topic.parse(bytes) else { return nil }
        let subscribed = Subscribed(topic: bytes, text: topic.renditionText, kind: topic.kind)
        return refusals[subscribed].map { (subscribed, $0.error) }
    }

    /// Somebody has subscribed, perhaps not as the first one.
    mutating func subscribe(_ bytes: [UInt8]) -> Change {
        switch Topic.parse(bytes) {
        case .ack: return .acknowledge(bytes)
        case .media(let topic) where topic.device == device:
            return add(Subscribed(topic: bytes, text: topic.renditionText, kind: topic.kind), topic)
        default: return .none
        }
    }

    /// The last subscriber of the topic has gone.
    mutating func unsubscribe(_ bytes: [UInt8]) -> Change {
        guard case .media(let topic) = Topic.parse(bytes), topic.device == device else { return .none }
        let subscribed = Subscribed(topic: bytes, text: topic.renditionText, kind: topic.kind)
        if refusals.removeValue(forKey: subscribed) != nil { return .forgotten }
        guard let index = wanted.firstIndex(where: { $0.topics.contains(subscribed) }) else { return .none }
        wanted[index].topics.removeAll { $0 == subscribed }
        removeIfEmpty(index)
        return .wanted
    }

    /// Somebody wants rings of a rendition, perhaps not as the first one. ``wanted`` may have changed.
    mutating func wantRing(_ text: String) throws(BusError) -> Rendition {
        let rendition = try Rendition(parsing: text)
        if let index = wanted.firstIndex(where: { $0.rendition == rendition }) {
            wanted[index].hasRing = true
        } else {
            guard wanted.count < maximumRenditions else { throw tooMany }
            wanted.append(Wanted(rendition: rendition, topics: [], hasRing: true))
        }
        return rendition
    }

    /// The last one who wanted rings of it has gone. ``wanted`` may have changed.
    mutating func unwantRing(_ rendition: Rendition) {
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

    private mutating func add(_ subscribed: Subscribed, _ topic: MediaTopic) -> Change {
        guard refusals[subscribed] == nil, !wanted.contains(where: { $0.topics.contains(subscribed) }) else {
            return .none
        }
        guard count < maximumTopics else {
            ignored += 1
            return .none
        }
        do {
            let rendition = try parsed(topic)
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

    private mutating func refuse(_ subscribed: Subscribed, _ error: BusError, waiting rendition: Rendition?) -> Change {
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

    private func parsed(_ topic: MediaTopic) throws(BusError) -> Rendition {
        if kinds.contains(topic.kind) { return try topic.rendition() }
        let instead =
            if kinds.contains(.set) {
                "a rig; subscribe to set"
            } else if topic.kind == .audio {
                "a camera and has no sound; subscribe to frame"
            } else {
                "a camera and no rig; subscribe to frame"
            }
        throw BusError(
            .formatUnsupported, "\(topic.device) is \(instead)/\(topic.device)/native/.", ["nearest": .null])
    }
}
