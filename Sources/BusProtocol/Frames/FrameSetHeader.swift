public import JSON

/// What stands before the pictures of a rig's matched set: the second frame of a message on `set/<name>/<rendition>/`,
/// as a client reads it.
public struct FrameSetHeader: Hashable, Sendable {
    /// One device's part in a set.
    public struct Part: Hashable, Sendable {
        /// The device's id, or its `uniqueID` where it is not there.
        public var device: String
        /// What its frame says of itself; nil: it is missing.
        public var frame: FrameHeader?
        /// Which of the payloads is its picture.
        public var payload: Int?
        /// Nanoseconds from the lead's frame to this one.
        public var offset: Int64
        /// Why it is missing, and in a sentence for people.
        public var missing: String?
        public var message: String?
        /// Frames of this device that are in no set so far, and those that went out late.
        public var unmatched: UInt64
        public var lateFrames: UInt64
    }

    /// The rig's name.
    public var set: String
    public var rendition: String
    /// A random id, new whenever ``sequence`` and ``number`` begin anew.
    public var stream: String
    /// Counts this topic's messages within ``stream``, without a hole at the publisher.
    public var sequence: UInt64
    /// The set's own number within ``stream``; of a late frame that of the set that it belongs to.
    public var number: UInt64
    /// A single frame, which came after its set.
    public var isLate: Bool
    /// The time of the lead's frame, CLOCK_MONOTONIC, nanoseconds.
    public var monotonic: Int64
    /// From the earliest of the frames to the latest, nanoseconds.
    public var spread: Int64
    /// How far from the lead's a frame may be, nanoseconds.
    public var tolerance: Int64
    /// One for each device of the rig, in its order; of a late frame's message the one alone.
    public var parts: [Part]
}

extension FrameSetHeader {
    /// Reads a header; unknown members are ignored.
    ///
    /// - Throws: what the publisher sent in place of a set, if the header holds `error`; `versionUnsupported` for a
    ///   header of another version; `internalError` for one that lacks a member.
    public init(_ json: JSONValue) throws(BusError) {
        guard json["v"]?.integer == Int64(FrameHeader.version) else {
            throw BusError(
                .versionUnsupported,
                "This set's header is of version \(json["v"] ?? .null), not \(FrameHeader.version).",
                ["supported": [JSONValue(FrameHeader.version)]])
        }
        if let error = json["error"] { throw BusError(header: error) }
        set = try Self.member(json, "set", \.string)
        rendition = try Self.member(json, "rendition", \.string)
        stream = try Self.member(json, "stream", \.string)
        sequence = try Self.member(json, "sequence", \.natural)
        number = try Self.member(json, "number", \.natural)
        isLate = try Self.member(json, "late", \.bool)
        monotonic = try Self.member(json, "monotonic", \.integer)
        spread = try Self.member(json, "spread", \.integer)
        tolerance = try Self.member(json, "tolerance", \.integer)
        parts = []
        for part in try Self.member(json, "frames", \.array) { parts.append(try Part(part)) }
    }

    fileprivate static func member<Value>(
        _ json: JSONValue, _ name: String, _ value: (JSONValue) -> Value?
    ) throws(BusError) -> Value {
        guard let value = json[name].flatMap(value) else {
            throw BusError(.internalError, "This set's header has no usable '\(name)'.")
        }
        return value
    }
}

extension FrameSetHeader.Part {
    fileprivate init(_ json: JSONValue) throws(BusError) {
        device = try FrameSetHeader.member(json, "device", \.string)
        unmatched = json["unmatched"]?.natural ?? 0
        lateFrames = json["lateFrames"]?.natural ?? 0
        offset = 0
        if let why = json["missing"] {
            missing = try FrameSetHeader.member(why, "reason", \.string)
            message = why["message"]?.string
            return
        }
        frame = try FrameHeader(json)
        payload = Int(clamping: try FrameSetHeader.member(json, "payload", \.natural))
        offset = try FrameSetHeader.member(json, "offset", \.integer)
    }
}

extension JSONValue {
    fileprivate var natural: UInt64? { integer.flatMap { UInt64(exactly: $0) } }
}
