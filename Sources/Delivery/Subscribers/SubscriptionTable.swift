package import BusProtocol
import JSON

/// The subscriptions at the media socket of one camera or rig: the renditions to be made, their topics, and the refused
/// topics.
package struct SubscriptionTable {
    package typealias Wanted = RenditionTable<Rendition>.Wanted

    private let device: String
    /// The kinds of topics that are published here.
    private let kinds: Set<MediaTopic.Kind>
    private var renditions: RenditionTable<Rendition>

    /// - Parameters:
    ///   - maximumRenditions: distinct renditions that are made at the same time.
    ///   - maximumTopics: distinct topics that are remembered.
    package init(
        device: String, kinds: Set<MediaTopic.Kind> = [.frame, .buffer],
        maximumRenditions: Int = BusLimits.maxRenditions, maximumTopics: Int = 4096
    ) {
        self.device = device
        self.kinds = kinds
        renditions = RenditionTable(maximumRenditions: maximumRenditions, maximumTopics: maximumTopics)
    }

    /// The renditions to be made, in the order of their first subscription.
    package var wanted: [Wanted] { renditions.wanted }

    /// Topics that are remembered.
    package var count: Int { renditions.count }

    /// Subscriptions that were ignored because there are too many.
    package var ignored: UInt64 { renditions.ignored }

    /// Topics that get an error instead of frames.
    package var refused: [(topic: SubscribedTopic, error: BusError)] { renditions.refused }

    /// The error of a refused topic.
    package func refusal(of bytes: [UInt8]) -> (topic: SubscribedTopic, error: BusError)? {
        guard case .media(let topic) = Topic.parse(bytes) else { return nil }
        return renditions.refusal(of: SubscribedTopic(topic: bytes, text: topic.renditionText, kind: topic.kind))
    }

    /// Adds a subscription; the topic may have others already.
    package mutating func subscribe(_ bytes: [UInt8]) -> SubscriptionChange {
        switch Topic.parse(bytes) {
        case .ack: return .acknowledge(bytes)
        case .media(let topic) where topic.device == device:
            let rendition = Result { () throws(BusError) in try parsed(topic) }
            return renditions.add(SubscribedTopic(topic: bytes, text: topic.renditionText, kind: topic.kind), rendition)
        default: return .none
        }
    }

    /// Removes a topic that has lost its last subscriber.
    package mutating func unsubscribe(_ bytes: [UInt8]) -> SubscriptionChange {
        guard case .media(let topic) = Topic.parse(bytes), topic.device == device else { return .none }
        return renditions.remove(SubscribedTopic(topic: bytes, text: topic.renditionText, kind: topic.kind))
    }

    /// Adds a reader of a rendition's rings. ``wanted`` may change.
    package mutating func wantRing(_ text: String) throws(BusError) -> Rendition {
        let rendition = try Rendition(parsing: text)
        try renditions.addRing(rendition)
        return rendition
    }

    /// The rendition's rings have lost their last reader. ``wanted`` may change.
    package mutating func unwantRing(_ rendition: Rendition) { renditions.removeRing(rendition) }

    private func parsed(_ topic: MediaTopic) throws(BusError) -> Rendition {
        if kinds.contains(topic.kind) { return try topic.rendition() }
        let instead =
            if kinds.contains(.set) {
                "a rig; subscribe to set"
            } else if topic.kind == .audio {
                "a camera and has no sound; subscribe to frame"
            } else {
                "a camera, not a rig; subscribe to frame"
            }
        throw BusError(
            .formatUnsupported, "\(topic.device) is \(instead)/\(topic.device)/native/.", ["nearest": .null])
    }
}
