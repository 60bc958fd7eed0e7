public import JSON

/// What stands before the pixels: the second frame of a message on `frame/<device>/<rendition>/` or
/// `buffer/<device>/<rendition>/`, as a client reads it.
public struct FrameHeader: Hashable, Sendable {
    /// The version of the header that this library reads.
    public static let version = 1

    /// One plane of the picture within the payload.
    public struct Plane: Hashable, Sendable {
        /// Bytes from the start of the payload.
        public var offset: Int
        /// Bytes from one line to the next; 0 for compressed pictures.
        public var stride: Int
        /// Bytes of the whole plane.
        public var bytes: Int

        public init(offset: Int, stride: Int, bytes: Int) {
            self.offset = offset
            self.stride = stride
            self.bytes = bytes
        }
    }

    /// Where the picture lies in shared memory (`Protocol/RING.md`).
    public struct Buffer: Hashable, Sendable {
        /// The id of the ring.
        public var ring: String
        public var slot: Int
        /// Bytes from the start of the ring's memory: that is where the planes' offsets begin.
        public var offset: Int
        public var bytes: Int
        /// That of the slot, as long as the picture lies there.
        public var stamp: UInt64

        public init(ring: String, slot: Int, offset: Int, bytes: Int, stamp: UInt64) {
            self.ring = ring
            self.slot = slot
            self.offset = offset
            self.bytes = bytes
            self.stamp = stamp
        }
    }

    public var device: String
    public var rendition: String
    /// A random id, new at each start of the stream.
    public var stream: String
    /// Counts this topic's frames within `stream`, without a hole at the publisher.
    public var sequence: UInt64
    /// The driver's count within `stream`, with holes for what it lost.
    public var captureSequence: UInt64
    /// That of the device's last committed configuration.
    public var generation: UInt64
    /// CLOCK_MONOTONIC, nanoseconds. Of pictures that come in the order in which they are decoded that is when
    /// (`decodeTimeStamp`), and ``presentation`` is when they are shown.
    public var monotonic: Int64
    /// CLOCK_MONOTONIC, nanoseconds (`presentationTimeStamp`).
    public var presentation: Int64
    /// CLOCK_REALTIME, nanoseconds.
    public var realtime: Int64
    /// Which row of the picture the time belongs to: `startOfExposure`, `endOfFrame` or `dequeue`.
    public var timestampSource: String
    /// The four-character code of the pixels, as V4L2 spells it.
    public var format: String
    public var width: Int
    public var height: Int
    public var planes: [Plane]
    /// Degrees clockwise that the picture has to be turned to be upright: 0, 90, 180 or 270.
    /// If it is mirrored, left and right have to be exchanged after that.
    public var orientation: Int
    public var mirrored: Bool
    /// Colours, pixel shape and rate; nil: the publisher lacks the feature `formatDescriptions`.
    public var extensions: FormatExtensions?
    /// Frames that this rendition left out so far, within `stream`.
    public var dropped: UInt64
    /// For formats with frames that build on others; nil: each stands for itself.
    public var keyframe: Bool?
    /// How many times the middle of the device's picture is enlarged here, where the bus zooms; 1: it is the device's
    /// whole picture.
    public var zoom = 1.0
    /// What is known of the exposure, uninterpreted; nil: nothing.
    public var exposure: JSONValue?
    /// On `buffer/<device>/<rendition>/`, in place of a payload.
    public var buffer: Buffer?

    /// The header of a frame that came without one.
    public init(
        device: String, rendition: String, stream: String, sequence: UInt64, captureSequence: UInt64,
        generation: UInt64, monotonic: Int64, realtime: Int64, timestampSource: String, format: String, width: Int,
        height: Int, planes: [Plane], orientation: Int, mirrored: Bool, dropped: UInt64, keyframe: Bool? = nil
    ) {
        self.device = device
        self.rendition = rendition
        self.stream = stream
        self.sequence = sequence
        self.captureSequence = captureSequence
        self.generation = generation
        self.monotonic = monotonic
        presentation = monotonic
        self.realtime = realtime
        self.timestampSource = timestampSource
        self.format = format
        self.width = width
        self.height = height
        self.planes = planes
        self.orientation = orientation
        self.mirrored = mirrored
        self.dropped = dropped
        self.keyframe = keyframe
    }
}

extension FrameHeader {
    /// Reads a header; unknown members are ignored.
    ///
    /// - Throws: what the publisher sent in place of pixels, if the header holds `error`; `versionUnsupported` for a
    ///   header of another version; `internalError` for one that lacks a member.
    public init(_ json: JSONValue) throws(BusError) {
        guard json["v"]?.integer == Int64(Self.version) else {
            throw BusError(
                .versionUnsupported, "This frame header is of version \(json["v"] ?? .null), not \(Self.version).",
                ["supported": [JSONValue(Self.version)]])
        }
        if let error = json["error"] { throw BusError(header: error) }
        let time = json["timestamp"] ?? .null
        device = try Self.member(json, "device", \.string)
        rendition = try Self.member(json, "rendition", \.string)
        stream = try Self.member(json, "stream", \.string)
        sequence = try Self.member(json, "sequence", \.counter)
        captureSequence = try Self.member(json, "captureSequence", \.counter)
        generation = try Self.member(json, "generation", \.counter)
        monotonic = try Self.member(time, "monotonic", \.integer)
        presentation = time["presentation"]?.integer ?? monotonic
        realtime = try Self.member(time, "realtime", \.integer)
        timestampSource = try Self.member(time, "source", \.string)
        format = try Self.member(json, "format", \.string)
        width = try Self.member(json, "width", \.size)
        height = try Self.member(json, "height", \.size)
        orientation = try Self.member(json, "orientation", \.size)
        mirrored = try Self.member(json, "mirrored", \.bool)
        dropped = try Self.member(json, "dropped", \.counter)
        extensions = json["colorRange"] == nil ? nil : FormatExtensions(json)
        keyframe = json["keyframe"]?.bool
        if let value = json["zoom"]?.double, value >= 1 { zoom = value }
        if let value = json["exposure"], !value.isNull { exposure = value }
        if let value = json["buffer"] {
            buffer = Buffer(
                ring: try Self.member(value, "ring", \.string), slot: try Self.member(value, "slot", \.size),
                offset: try Self.member(value, "offset", \.size), bytes: try Self.member(value, "bytes", \.size),
                stamp: try Self.member(value, "stamp", \.counter))
        }
        planes = []
        for plane in try Self.member(json, "planes", \.array) {
            planes.append(
                Plane(
                    offset: try Self.member(plane, "offset", \.size), stride: try Self.member(plane, "stride", \.size),
                    bytes: try Self.member(plane, "bytes", \.size)))
        }
    }

    /// False if a plane reaches beyond a payload of that many bytes (in shared memory: those of ``buffer``): then the
    /// message is not to be used.
    public func planesFit(in payloadBytes: Int) -> Bool {
        planes.allSatisfy { plane in
            let (end, overflow) = plane.offset.addingReportingOverflow(plane.bytes)
            return !overflow && end <= payloadBytes
        }
    }

    private static func member<Value>(
        _ json: JSONValue, _ name: String, _ value: (JSONValue) -> Value?
    ) throws(BusError) -> Value {
        guard let value = json[name].flatMap(value) else {
            throw BusError(.internalError, "This frame header has no usable '\(name)'.")
        }
        return value
    }
}

extension JSONValue {
    fileprivate var counter: UInt64? { integer.flatMap { UInt64(exactly: $0) } }
    fileprivate var size: Int? { integer.flatMap { $0 >= 0 ? Int(exactly: $0) : nil } }
}
