public import JSON

/// What stands before the samples: the second frame of a message on `audio/<device>/<rendition>/`, as a client reads
/// it.
///
/// A *frame* of sound is one sample of each channel, as ALSA has it.
public struct SoundHeader: Hashable, Sendable {
    /// The version of the header that this library reads.
    public static let version = 1

    public var device: String
    public var rendition: String
    /// A random id, new at each start of the stream.
    public var stream: String
    /// Counts this topic's messages within `stream`, without a hole at the publisher.
    public var sequence: UInt64
    /// The number of the first frame within `stream`: where it is higher than the one before and its frames make it,
    /// sound is missing.
    public var firstFrame: UInt64
    /// Frames in the payload.
    public var frames: Int
    /// `s16`, `s24`, `s24in32`, `s32` or `f32`: little-endian, linear and interleaved.
    public var sampleFormat: String
    /// Frames a second.
    public var rate: Int
    public var channels: Int
    /// How often the device lost sound so far, within `stream`, because it was not fetched in time.
    public var overruns: UInt64
    /// That of the device's last committed configuration.
    public var generation: UInt64
    /// When the first frame was taken: CLOCK_MONOTONIC, nanoseconds.
    public var monotonic: Int64
    /// The same of CLOCK_REALTIME.
    public var realtime: Int64
    /// Whose time that is: `status` (the driver's) or `read`.
    public var timestampSource: String

    public init(
        device: String, rendition: String, stream: String, sequence: UInt64, firstFrame: UInt64, frames: Int,
        sampleFormat: String, rate: Int, channels: Int, overruns: UInt64, generation: UInt64, monotonic: Int64,
        realtime: Int64, timestampSource: String
    ) {
        self.device = device
        self.rendition = rendition
        self.stream = stream
        self.sequence = sequence
        self.firstFrame = firstFrame
        self.frames = frames
        self.sampleFormat = sampleFormat
        self.rate = rate
        self.channels = channels
        self.overruns = overruns
        self.generation = generation
        self.monotonic = monotonic
        self.realtime = realtime
        self.timestampSource = timestampSource
    }

    /// Bytes of one frame; 0: of a sample format that this library doesn't know.
    public var bytesPerFrame: Int { channels * Self.bytesPerSample(sampleFormat) }

    /// Bytes that a sample takes; 0: it isn't known.
    public static func bytesPerSample(_ format: String) -> Int {
        switch format {
        case "s16": 2
        case "s24": 3
        case "s24in32", "s32", "f32": 4
        default: 0
        }
    }
}

extension SoundHeader {
    /// Reads a header; unknown members are ignored.
    ///
    /// - Throws: what the publisher sent in place of sound, if the header holds `error`; `versionUnsupported` for a
    ///   header of another version; `internalError` for one that lacks a member.
    public init(_ json: JSONValue) throws(BusError) {
        guard json["v"]?.integer == Int64(Self.version) else {
            throw BusError(
                .versionUnsupported, "This sound header is of version \(json["v"] ?? .null), not \(Self.version).",
                ["supported": [JSONValue(Self.version)]])
        }
        if let error = json["error"] { throw BusError(header: error) }
        let time = json["timestamp"] ?? .null
        device = try Self.member(json, "device", \.string)
        rendition = try Self.member(json, "rendition", \.string)
        stream = try Self.member(json, "stream", \.string)
        sequence = try Self.member(json, "sequence", \.counter)
        firstFrame = try Self.member(json, "firstFrame", \.counter)
        frames = try Self.member(json, "frames", \.size)
        sampleFormat = try Self.member(json, "sampleFormat", \.string)
        rate = try Self.member(json, "rate", \.positive)
        channels = try Self.member(json, "channels", \.positive)
        overruns = try Self.member(json, "overruns", \.counter)
        generation = try Self.member(json, "generation", \.counter)
        monotonic = try Self.member(time, "monotonic", \.integer)
        realtime = try Self.member(time, "realtime", \.integer)
        timestampSource = try Self.member(time, "source", \.string)
    }

    /// False if a payload of that many bytes is not as long as its frames make it: then the message is not to be used.
    public func framesFit(in payloadBytes: Int) -> Bool {
        guard bytesPerFrame > 0 else { return frames == 0 || payloadBytes >= frames }
        let (bytes, overflow) = frames.multipliedReportingOverflow(by: bytesPerFrame)
        return !overflow && bytes == payloadBytes
    }

    private static func member<Value>(
        _ json: JSONValue, _ name: String, _ value: (JSONValue) -> Value?
    ) throws(BusError) -> Value {
        guard let value = json[name].flatMap(value) else {
            throw BusError(.internalError, "This sound header has no usable '\(name)'.")
        }
        return value
    }
}

extension JSONValue {
    fileprivate var counter: UInt64? { integer.flatMap { UInt64(exactly: $0) } }
    fileprivate var size: Int? { integer.flatMap { $0 >= 0 ? Int(exactly: $0) : nil } }
    // A stranger's number of channels is multiplied later on.
    fileprivate var positive: Int? { integer.flatMap { (1...Int64(Int32.max)).contains($0) ? Int($0) : nil } }
}
