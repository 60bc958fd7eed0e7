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
    ///   - maximumRenditions: distinct renditions that are made at the same time, in addition to `native` and `jpeg`.
    ///   - maximumTopics: distinct topics that are remembered.
    package init(
        device: String, kinds: Set<MediaTopic.Kind> = [.frame, .buffer],
        maximumRenditions: Int = BusLimits.maxRenditions, maximumTopics: Int = 4096
    ) {
        self.device = device
        self.kinds = kinds
        renditions = RenditionTable(shares: RenditionShares(total: maximumRenditions), maximumTopics: maximumTopics)
    }

    /// What each user is, as far as shares of renditions are concerned.
    package var standing: (_ uid: UInt32) -> RenditionShares.Standing {
        get { renditions.standing }
        set { renditions.standing = newValue }
    }

    /// Why the device cannot give a rendition; nil: it can, or that is not known yet. Call ``recheck()`` when that may
    /// have changed.
    package var obstacle: (Rendition) -> BusError? {
        get { renditions.obstacle }
        set { renditions.obstacle = newValue }
    }

    /// The renditions to be made, in the order in which they got their places.
    package var wanted: [Wanted] { renditions.wanted }

    /// The renditions that are made, and some of those that the device could give in another format.
    package var demanded: [Rendition] { renditions.demanded }

    /// Topics that are remembered.
    package var count: Int { renditions.count }

    /// Subscriptions that were ignored because there are too many.
    package var ignored: UInt64 { renditions.ignored }

    /// Topics that get an error instead of frames.
    package var refused: [ErrorPublisher.Refusal] { renditions.refused }

    /// Renditions whose readers get an error instead of rings.
    package var refusedRings: [(rendition: Rendition, error: BusError)] { renditions.refusedRings }

    /// Renditions that are not made, and why.
    package var refusedRenditions: [(rendition: Rendition, error: BusError)] { renditions.refusedForms }

    /// The error of a refused topic.
    package func refusal(of bytes: [UInt8]) -> ErrorPublisher.Refusal? {
        SubscribedTopic(bytes, of: device).flatMap { renditions.refusal(of: $0) }
    }

    /// The topics that were refused since the last call, each with its error.
    package mutating func takeRefusals() -> [ErrorPublisher.Refusal] { renditions.takeRefusals() }

    /// Adds a client's subscription; the topic may have others already.
    package mutating func subscribe(_ bytes: [UInt8], by client: RenditionClient) -> SubscriptionChange {
        guard let topic = SubscribedTopic(bytes, of: device) else { return .none }
        let rendition = Result { () throws(BusError) in try parsed(topic) }
        return renditions.add(topic, rendition, by: client)
    }

    /// A client no longer subscribes to the topic.
    package mutating func unsubscribe(_ bytes: [UInt8], by client: RenditionClient) -> SubscriptionChange {
        guard let topic = SubscribedTopic(bytes, of: device) else { return .none }
        return renditions.remove(topic, by: client)
    }

    /// Adds a reader of a rendition's rings. ``wanted`` may change.
    package mutating func wantRing(_ rendition: Rendition, by client: RenditionClient) -> SubscriptionChange {
        renditions.addRing(rendition, by: client)
    }

    /// A client no longer reads the rendition's rings. ``wanted`` may change.
    package mutating func unwantRing(_ rendition: Rendition, by client: RenditionClient) -> SubscriptionChange {
        renditions.removeRing(rendition, by: client)
    }

    /// Decides anew what the device can give.
    ///
    /// - Returns: whether ``wanted`` has changed.
    package mutating func recheck() -> Bool { renditions.recheck() }

    private func parsed(_ topic: SubscribedTopic) throws(BusError) -> Rendition {
        if kinds.contains(topic.kind) { return try Rendition(parsing: topic.text) }
        let instead =
            if kinds.contains(.set) {
                "a rig; subscribe to set"
            } else if topic.kind == .audio {
                "a camera and has no sound; subscribe to frame"
            } else {
                "a camera, not a rig; subscribe to frame"
            }
        throw BusError(
            .formatUnsupported, "\(device) is \(instead)/\(device)/native/.", ["nearest": .null])
    }
}
