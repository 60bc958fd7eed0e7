package import BusProtocol

/// A complete topic with at least one subscriber.
package struct SubscribedTopic: Hashable {
    /// The bytes of the subscription.
    package let topic: [UInt8]
    /// The rendition as the subscriber spelled it.
    package let text: String
    /// Whether the message has the pixels, or their place in a ring.
    package var kind = MediaTopic.Kind.frame

    package init(topic: [UInt8], text: String, kind: MediaTopic.Kind = .frame) {
        self.topic = topic
        self.text = text
        self.kind = kind
    }

    /// Reads the bytes of a subscription; nil where it is no complete topic of that device's media.
    init?(_ bytes: [UInt8], of device: String) {
        switch Topic.parse(bytes) {
        case .media(let topic)? where topic.device == device:
            self.init(topic: bytes, text: topic.renditionText, kind: topic.kind)
        case .level(let name)? where name == device: self.init(topic: bytes, text: "", kind: .audio)
        default: return nil
        }
    }
}

/// What a subscription or its end changes.
package enum SubscriptionChange: Equatable {
    case none
    /// The renditions to be made have changed, or one of them has a further client.
    case wanted
    /// A topic for which nothing is made has lost its last subscriber.
    case forgotten
}
