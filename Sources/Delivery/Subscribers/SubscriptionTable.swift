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

    typealias Wanted = WantedRenditions<Rendition>.Wanted

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

    private let device: String
    /// What is published here.
    private let kinds: Set<MediaTopic.Kind>
    private var renditions: WantedRenditions<Rendition>

    /// - Parameters:
    ///   - maximumRenditions: distinct renditions that are made at the same time.
    ///   - maximumTopics: distinct topics that are remembered.
    init(
        device: String, kinds: Set<MediaTopic.Kind> = [.frame, .buffer],
        maximumRenditions: Int = BusLimits.maxRenditions, maximumTopics: Int = 4096
    ) {
        self.device = device
        self.kinds = kinds
        renditions = WantedRenditions(maximumRenditions: maximumRenditions, maximumTopics: maximumTopics)
    }

    /// What is to be made, in the order in which it was asked for.
    var wanted: [Wanted] { renditions.wanted }

    /// Topics that are remembered.
    var count: Int { renditions.count }

    /// Subscriptions that were ignored because there are too many.
    var ignored: UInt64 { renditions.ignored }

    /// Topics that get an error instead of frames.
    var refused: [(topic: Subscribed, error: BusError)] { renditions.refused }

    /// Why the topic gets an error instead of frames, if so.
    func refusal(of bytes: [UInt8]) -> (topic: Subscribed, error: BusError)? {
        guard case .media(let topic) = Topic.parse(bytes) else { return nil }
        return renditions.refusal(of: Subscribed(topic: bytes, text: topic.renditionText, kind: topic.kind))
    }

    /// Somebody has subscribed, perhaps not as the first one.
    mutating func subscribe(_ bytes: [UInt8]) -> Change {
        switch Topic.parse(bytes) {
        case .ack: return .acknowledge(bytes)
        case .media(let topic) where topic.device == device:
            let rendition = Result { () throws(BusError) in try parsed(topic) }
            return renditions.add(Subscribed(topic: bytes, text: topic.renditionText, kind: topic.kind), rendition)
        default: return .none
        }
    }

    /// The last subscriber of the topic has gone.
    mutating func unsubscribe(_ bytes: [UInt8]) -> Change {
        guard case .media(let topic) = Topic.parse(bytes), topic.device == device else { return .none }
        return renditions.remove(Subscribed(topic: bytes, text: topic.renditionText, kind: topic.kind))
    }

    /// Somebody wants rings of a rendition, perhaps not as the first one. ``wanted`` may have changed.
    mutating func wantRing(_ text: String) throws(BusError) -> Rendition {
        let rendition = try Rendition(parsing: text)
        try renditions.addRing(rendition)
        return rendition
    }

    /// The last one who wanted rings of it has gone. ``wanted`` may have changed.
    mutating func unwantRing(_ rendition: Rendition) { renditions.removeRing(rendition) }

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
