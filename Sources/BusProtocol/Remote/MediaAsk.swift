/// What a client on another machine sends to get pictures or sound: a byte, and a topic behind it.
///
/// Each asks for one message: the next one comes only after the client has taken one, so that a slow link shows the
/// present, less often.
public struct MediaAsk: Hashable, Sendable {
    public enum Kind: UInt8, Hashable, Sendable, CaseIterable {
        /// No more of it.
        case end = 0
        /// One message more.
        case next = 1
        /// One message more, and pixels may come as they are.
        case nextRaw = 2
    }

    public var kind: Kind
    public var topic: [UInt8]

    public init(_ kind: Kind, topic: [UInt8]) {
        self.kind = kind
        self.topic = topic
    }

    /// nil for what is no such message.
    public init?(parsing bytes: some Collection<UInt8>) {
        guard let kind = bytes.first.flatMap(Kind.init(rawValue:)), bytes.count - 1 <= BusLimits.maxTopicBytes,
            bytes.count > 1
        else { return nil }
        self.init(kind, topic: Array(bytes.dropFirst()))
    }

    public var bytes: [UInt8] { [kind.rawValue] + topic }
}
