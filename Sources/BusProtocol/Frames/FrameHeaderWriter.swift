import JSON

/// Writes the header of each frame of one rendition and one stream into memory that it keeps.
///
/// What stays the same is rendered once; a frame costs some digits, and after the first one no allocation.
public struct FrameHeaderWriter: Sendable {
    /// What all frames of a rendition share within one stream.
    public struct Picture: Hashable, Sendable {
        public var device: String
        /// As the subscriber spelled it.
        public var rendition: String
        public var stream: String
        /// The four-character code as V4L2 spells it.
        public var format: String
        public var width: Int
        public var height: Int
        /// Where the planes lie; nil for a compressed picture, which is one plane of as many bytes as the payload has.
        public var planes: [FrameHeader.Plane]?
        public var orientation: Int
        public var mirrored: Bool
        /// nil: nothing is said.
        public var extensions: FormatExtensions?
        /// `startOfExposure`, `endOfFrame` or `dequeue`.
        public var timestampSource: String
        /// The ring in which the pictures lie; nil: they follow the header.
        public var ring: String?

        public init(
            device: String, rendition: String, stream: String, format: String, width: Int, height: Int,
            planes: [FrameHeader.Plane]?, orientation: Int = 0, mirrored: Bool = false,
            extensions: FormatExtensions? = nil, timestampSource: String, ring: String? = nil
        ) {
            self.device = device
            self.rendition = rendition
            self.stream = stream
            self.format = format
            self.width = width
            self.height = height
            self.planes = planes
            self.orientation = orientation
            self.mirrored = mirrored
            self.extensions = extensions
            self.timestampSource = timestampSource
            self.ring = ring
        }
    }

    /// Where a picture lies in its ring.
    public struct Place: Hashable, Sendable {
        public var slot: Int
        /// Bytes from the start of the ring's memory.
        public var offset: Int
        public var stamp: UInt64

        public init(slot: Int, offset: Int, stamp: UInt64) {
            self.slot = slot
            self.offset = offset
            self.stamp = stamp
        }
    }

    private var writer: JSONWriter
    private let constantBytes: Int
    private let timestampTail: [UInt8]
    /// Up to the slot's number; empty where no ring is.
    private let bufferHead: [UInt8]
    private let isCompressed: Bool

    public init(_ picture: Picture) {
        isCompressed = picture.planes == nil
        var writer = JSONWriter(capacity: 1024)
        writer.raw(#"{"v":1,"device":"#)
        writer.string(picture.device)
        writer.raw(#","rendition":"#)
        writer.string(picture.rendition)
        writer.raw(#","stream":"#)
        writer.string(picture.stream)
        writer.raw(#","format":"#)
        writer.string(picture.format)
        writer.raw(#","width":"#)
        writer.integer(Int64(picture.width))
        writer.raw(#","height":"#)
        writer.integer(Int64(picture.height))
        writer.raw(#","orientation":"#)
        writer.integer(Int64(picture.orientation))
        picture.mirrored ? writer.raw(#","mirrored":true"#) : writer.raw(#","mirrored":false"#)
        if let extensions = picture.extensions { Self.write(extensions, to: &writer) }
        if let planes = picture.planes {
            writer.raw(#","planes":["#)
            for (index, plane) in planes.enumerated() {
                if index > 0 { writer.raw(",") }
                Self.write(plane, to: &writer)
            }
            writer.raw("]")
        }
        writer.raw(#","sequence":"#)
        constantBytes = writer.bytes.count
        self.writer = writer
        var tail = JSONWriter()
        tail.raw(#","source":"#)
        tail.string(picture.timestampSource)
        tail.raw(#"},"dropped":"#)
        timestampTail = tail.bytes
        var head = JSONWriter()
        if let ring = picture.ring {
            head.raw(#","buffer":{"ring":"#)
            head.string(ring)
            head.raw(#","slot":"#)
        }
        bufferHead = head.bytes
    }

    /// Writes the header of the next frame; ``bytes`` and ``withBytes(_:)`` then give it.
    ///
    /// - Parameters:
    ///   - monotonic: CLOCK_MONOTONIC, nanoseconds.
    ///   - realtime: CLOCK_REALTIME, nanoseconds.
    ///   - dropped: frames that this rendition left out so far.
    ///   - keyframe: where frames build on one another: whether this one builds on none before it.
    ///   - presentationDelay: nanoseconds from `monotonic` to when the picture is shown; told where it is more than 0.
    ///   - zoom: how many times the middle of the device's picture is enlarged, in thousandths; told where it is more
    ///     than 1000.
    ///   - payloadBytes: bytes of the payload; told in the header for a compressed picture, and for one in a ring.
    ///   - place: where it lies, for a picture in a ring.
    public mutating func write(
        sequence: UInt64, captureSequence: UInt64, generation: UInt64, monotonic: Int64, realtime: Int64,
        dropped: UInt64, keyframe: Bool? = nil, presentationDelay: Int64 = 0, zoom: Int = 1000, payloadBytes: Int,
        place: Place? = nil
    ) {
        writer.truncate(to: constantBytes)
        writer.unsigned(sequence)
        writer.raw(#","captureSequence":"#)
        writer.unsigned(captureSequence)
        writer.raw(#","generation":"#)
        writer.unsigned(generation)
        if isCompressed {
            writer.raw(#","planes":["#)
            Self.write(FrameHeader.Plane(offset: 0, stride: 0, bytes: payloadBytes), to: &writer)
            writer.raw("]")
        }
        writer.raw(#","timestamp":{"monotonic":"#)
        writer.integer(monotonic)
        writer.raw(#","realtime":"#)
        writer.integer(realtime)
        if presentationDelay > 0 {
            writer.raw(#","presentation":"#)
            writer.integer(monotonic &+ presentationDelay)
        }
        writer.raw(timestampTail)
        writer.unsigned(dropped)
        if let keyframe { keyframe ? writer.raw(#","keyframe":true"#) : writer.raw(#","keyframe":false"#) }
        if zoom > 1000 {
            writer.raw(#","zoom":"#)
            writer.thousandths(UInt64(zoom))
        }
        if let place, !bufferHead.isEmpty {
            writer.raw(bufferHead)
            writer.integer(Int64(place.slot))
            writer.raw(#","offset":"#)
            writer.integer(Int64(place.offset))
            writer.raw(#","bytes":"#)
            writer.integer(Int64(payloadBytes))
            writer.raw(#","stamp":"#)
            writer.unsigned(place.stamp)
            writer.raw("}")
        }
        writer.raw("}")
    }

    /// The header written last. Holding on to it makes the next `write` copy.
    public var bytes: [UInt8] { writer.bytes }

    /// Lends the header written last.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try writer.bytes.withUnsafeBytes(body)
    }

    private static func write(_ extensions: FormatExtensions, to writer: inout JSONWriter) {
        for member in FormatExtensions.Member.allCases {
            guard let value = extensions.value(member) else { continue }
            writer.raw(",")
            writer.string(member.rawValue)
            writer.raw(":")
            writer.value(value)
        }
    }

    private static func write(_ plane: FrameHeader.Plane, to writer: inout JSONWriter) {
        writer.raw(#"{"offset":"#)
        writer.integer(Int64(plane.offset))
        writer.raw(#","stride":"#)
        writer.integer(Int64(plane.stride))
        writer.raw(#","bytes":"#)
        writer.integer(Int64(plane.bytes))
        writer.raw("}")
    }
}
