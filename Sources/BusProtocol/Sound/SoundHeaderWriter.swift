import JSON

/// Writes the header of each message of sound of one topic and one stream into memory that it keeps.
///
/// What stays the same is rendered once; a message costs some digits, and after the first one no allocation.
public struct SoundHeaderWriter: Sendable {
    /// What all messages of a topic share within one stream.
    public struct Sound: Hashable, Sendable {
        public var device: String
        /// As the subscriber spelled it.
        public var rendition: String
        public var stream: String
        /// `s16`, `s24`, `s24in32`, `s32` or `f32`.
        public var sampleFormat: String
        /// Frames a second.
        public var rate: Int
        public var channels: Int
        /// `status` or `read`.
        public var timestampSource: String

        public init(
            device: String, rendition: String, stream: String, sampleFormat: String, rate: Int, channels: Int,
            timestampSource: String
        ) {
            self.device = device
            self.rendition = rendition
            self.stream = stream
            self.sampleFormat = sampleFormat
            self.rate = rate
            self.channels = channels
            self.timestampSource = timestampSource
        }
    }

    private var writer: JSONWriter
    private let constantBytes: Int
    private let tail: [UInt8]

    public init(_ sound: Sound) {
        var writer = JSONWriter(capacity: 512)
        writer.raw(#"{"v":1,"device":"#)
        writer.string(sound.device)
        writer.raw(#","rendition":"#)
        writer.string(sound.rendition)
        writer.raw(#","stream":"#)
        writer.string(sound.stream)
        writer.raw(#","sampleFormat":"#)
        writer.string(sound.sampleFormat)
        writer.raw(#","rate":"#)
        writer.integer(Int64(sound.rate))
        writer.raw(#","channels":"#)
        writer.integer(Int64(sound.channels))
        writer.raw(#","sequence":"#)
        constantBytes = writer.bytes.count
        self.writer = writer
        var tail = JSONWriter()
        tail.raw(#","source":"#)
        tail.string(sound.timestampSource)
        tail.raw("}}")
        self.tail = tail.bytes
    }

    /// Writes the header of the next message; ``bytes`` then gives it.
    ///
    /// - Parameters:
    ///   - firstFrame: the number of the first frame within the stream.
    ///   - frames: frames in the payload.
    ///   - overruns: how often the device lost sound so far, within the stream.
    ///   - monotonic: when the first frame was taken: CLOCK_MONOTONIC, nanoseconds.
    ///   - realtime: the same of CLOCK_REALTIME.
    public mutating func write(
        sequence: UInt64, firstFrame: UInt64, frames: Int, overruns: UInt64, generation: UInt64, monotonic: Int64,
        realtime: Int64
    ) {
        writer.truncate(to: constantBytes)
        writer.unsigned(sequence)
        writer.raw(#","firstFrame":"#)
        writer.unsigned(firstFrame)
        writer.raw(#","frames":"#)
        writer.integer(Int64(frames))
        writer.raw(#","overruns":"#)
        writer.unsigned(overruns)
        writer.raw(#","generation":"#)
        writer.unsigned(generation)
        writer.raw(#","timestamp":{"monotonic":"#)
        writer.integer(monotonic)
        writer.raw(#","realtime":"#)
        writer.integer(realtime)
        writer.raw(tail)
    }

    /// The header written last. Holding on to it makes the next
    /// ``write(sequence:firstFrame:frames:overruns:generation:monotonic:realtime:)`` copy.
    public var bytes: [UInt8] { writer.bytes }
}
