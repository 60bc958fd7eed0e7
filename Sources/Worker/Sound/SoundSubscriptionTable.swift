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
    private var levelClients: Set<RenditionClient> = []

    /// - Parameters:
    ///   - maximumRenditions: distinct renditions that are made at the same time, in addition to `native`.
    ///   - maximumTopics: distinct topics that are remembered.
    init(device: String, maximumRenditions: Int = BusLimits.maxRenditions, maximumTopics: Int = 4096) {
        self.device = device
        renditions = RenditionTable(shares: RenditionShares(total: maximumRenditions), maximumTopics: maximumTopics)
    }

    /// What each user is, as far as shares of renditions are concerned.
    var standing: (_ uid: UInt32) -> RenditionShares.Standing {
        get { renditions.standing }
        set { renditions.standing = newValue }
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

    /// Renditions whose readers get an error instead of rings.
    var refusedRings: [(rendition: SoundRendition, error: BusError)] { renditions.refusedRings }

    /// Renditions that are not made, and why.
    var refusedRenditions: [(rendition: SoundRendition, error: BusError)] { renditions.refusedForms }

    /// Why the topic gets an error, if so.
    func refusal(of bytes: [UInt8]) -> ErrorPublisher.Refusal? {
        guard case .media(let topic) = Topic.parse(bytes) else { return nil }
        return renditions.refusal(of: SubscribedTopic(topic: bytes, text: topic.renditionText, kind: topic.kind))
    }

    /// The topics that were refused since the last call, each with its error.
    mutating func takeRefusals() -> [ErrorPublisher.Refusal] { renditions.takeRefusals() }

    /// Adds a client's subscription; the topic may have others already.
    mutating func subscribe(_ bytes: [UInt8], by client: RenditionClient) -> SubscriptionChange {
        switch Topic.parse(bytes) {
        case .level(let name) where name == device:
            levelClients.insert(client)
            guard level == nil else { return .none }
            level = SubscribedTopic(topic: bytes, text: "", kind: .audio)
            return .wanted
        case .media(let topic) where topic.device == device:
            let rendition = Result { () throws(BusError) in try parsed(topic) }
            return renditions.add(
                SubscribedTopic(topic: bytes, text: topic.renditionText, kind: topic.kind), rendition, by: client)
        default: return .none
        }
    }

    /// A client no longer subscribes to the topic.
    mutating func unsubscribe(_ bytes: [UInt8], by client: RenditionClient) -> SubscriptionChange {
        if level?.topic == bytes {
            levelClients.remove(client)
            guard levelClients.isEmpty else { return .none }
            level = nil
            return .wanted
        }
        guard case .media(let topic) = Topic.parse(bytes), topic.device == device else { return .none }
        return renditions.remove(
            SubscribedTopic(topic: bytes, text: topic.renditionText, kind: topic.kind), by: client)
    }

    /// Adds a reader of a rendition's rings. ``sound`` may change.
    mutating func wantRing(_ rendition: SoundRendition, by client: RenditionClient) -> SubscriptionChange {
        renditions.addRing(rendition, by: client)
    }

    /// A client no longer reads the rendition's rings. ``sound`` may change.
    mutating func unwantRing(_ rendition: SoundRendition, by client: RenditionClient) -> SubscriptionChange {
        renditions.removeRing(rendition, by: client)
    }

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
