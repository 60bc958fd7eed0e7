/// A topic of a device's media socket that asks for something to be made: `frame/<device>/<rendition>/`.
public struct MediaTopic: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Header and pixels.
        case frame
        /// Header with a reference into the shared-memory ring.
        case buffer
        /// Frames of a rig's devices that were taken at the same time: header and one payload each. On the rig's own
        /// socket.
        case set
        /// Header and PCM, of a microphone.
        case audio
    }

    public var kind: Kind
    /// For `set`: the rig's name.
    public var device: String
    /// The rendition as the subscriber spelled it, well-formed or not: the answer's topic repeats it byte for byte.
    public var renditionText: String

    public init(_ kind: Kind, device: String, renditionText: String) {
        self.kind = kind
        self.device = device
        self.renditionText = renditionText
    }

    /// Reads a complete topic. nil for everything else: a prefix, another kind, a device that can't be one, no UTF-8.
    public init?(parsing bytes: some Collection<UInt8>) {
        guard case .media(let topic)? = Topic.parse(bytes) else { return nil }
        self = topic
    }

    /// What is asked for.
    ///
    /// - Throws: `invalidParams` when the text is no rendition; the topic gets it as an error header.
    public func rendition() throws(BusError) -> Rendition { try Rendition(parsing: renditionText) }

    /// The same of `audio`.
    public func soundRendition() throws(BusError) -> SoundRendition { try SoundRendition(parsing: renditionText) }

    public var text: String { "\(kind.rawValue)/\(device)/\(renditionText)/" }
}
