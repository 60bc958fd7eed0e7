import BusProtocol
import Delivery
import JSON

/// The subscriptions at the media socket of a microphone: the renditions of its sound to be made, its level, and the
/// refused topics.
struct SoundSubscriptionTable {
    typealias Wanted = RenditionTable<SoundRendition>.Wanted

    private let device: String
    private var renditions: RenditionTable<SoundRendition>
    /// The topic of its level, while it has subscribers.
    private(set) var level: SubscribedTopic?

    /// - Parameters:
    ///   - maximumRenditions: distinct renditions that are made at the same time.
    ///   - maximumTopics: distinct topics that are remembered.
    init(device: String, maximumRenditions: Int = BusLimits.maxRenditions, maximumTopics: Int = 4096) {
        self.device = device
        renditions = RenditionTable(maximumRenditions: maximumRenditions, maximumTopics: maximumTopics)
    }

    /// What sound is to be made, in the order in which it was asked for.
    var sound: [Wanted] { renditions.wanted }

    var isEmpty: Bool { sound.isEmpty && level == nil }

    /// All topics with sound or levels.
    var wanted: [SubscribedTopic] { sound.flatMap(\.topics) + [level].compactMap(\.self) }

    /// The renditions with readers of rings.
    var rings: [SoundRendition] { sound.filter(\.needsRing).map(\.rendition) }

    /// Topics that are remembered.
    var count: Int { renditions.count + (level == nil ? 0 : 1) }

    /// Subscriptions that were ignored because there are too many.
    var ignored: UInt64 { renditions.ignored }

    /// Topics that get an error instead.
    var refused: [ErrorPublisher.Refusal] { renditions.refused }

    /// Why the topic gets an error, if so.
    func refusal(of bytes: [UInt8]) -> ErrorPublisher.Refusal? {
        guard case .media(let topic) = Topic.parse(bytes) else { return nil }
        return renditions.refusal(of: SubscribedTopic(topic: bytes, text: topic.renditionText, kind: topic.kind))
    }

    /// Adds a subscription; the topic may have others already.
    mutating func subscribe(_ bytes: [UInt8]) -> SubscriptionChange {
        switch Topic.parse(bytes) {
        case .ack: return .acknowledge(bytes)
        case .level(let name) where name == device:
            guard level == nil else { return .none }
            level = SubscribedTopic(topic: bytes, text: "", kind: .audio)
            return .wanted
        case .media(let topic) where topic.device == device:
            let rendition = Result { () throws(BusError) in try parsed(topic) }
            return renditions.add(SubscribedTopic(topic: bytes, text: topic.renditionText, kind: topic.kind), rendition)
        default: return .none
        }
    }

    /// The last subscriber of the topic has gone.
    mutating func unsubscribe(_ bytes: [UInt8]) -> SubscriptionChange {
        if level?.topic == bytes {
            level = nil
            return .wanted
        }
        guard case .media(let topic) = Topic.parse(bytes), topic.device == device else { return .none }
        return renditions.remove(SubscribedTopic(topic: bytes, text: topic.renditionText, kind: topic.kind))
    }

    /// Adds a reader of a rendition's rings. ``sound`` may change.
    mutating func wantRing(_ text: String) throws(BusError) -> SoundRendition {
        let rendition = try SoundRendition(parsing: text)
        try renditions.addRing(rendition)
        return rendition
    }

    /// The rendition's rings have lost their last reader. ``sound`` may change.
    mutating func unwantRing(_ rendition: SoundRendition) { renditions.removeRing(rendition) }

    private func parsed(_ topic: MediaTopic) throws(BusError) -> SoundRendition {
        guard topic.kind == .audio else {
            throw BusError(
                .formatUnsupported,
                "\(device) is a microphone and has no pictures; subscribe to audio/\(device)/native/.",
                ["nearest": .null])
        }
        return try topic.soundRendition()
    }
}
