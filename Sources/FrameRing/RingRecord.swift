import LinuxIO

/// What is told of one frame beside its slot's stamp. A period of sound is told of likewise: ``firstFrame`` and
/// ``overruns`` stand in the place of what pictures have.
public struct RingRecord: Hashable, Sendable {
    /// Which row of the picture the time belongs to.
    public enum TimestampSource: UInt32, Hashable, Sendable {
        case startOfExposure = 0
        case endOfFrame = 1
        /// The driver gives no time: it is that at which the frame was fetched.
        case dequeue = 2

        /// Of sound: the driver's time of the first frame.
        public static let status = startOfExposure
        /// Of sound: when it was read.
        public static let read = dequeue
    }

    /// Counts the frames of this rendition within its stream, without a hole at the publisher.
    public var sequence: UInt64
    /// The driver's count within the stream.
    public var captureSequence: UInt64
    /// CLOCK_MONOTONIC, nanoseconds.
    public var monotonic: Int64
    /// CLOCK_REALTIME, nanoseconds.
    public var realtime: Int64
    /// That of the last committed configuration.
    public var generation: UInt64
    /// Frames that this rendition left out so far within the stream.
    public var dropped: UInt64
    /// Bytes from the start of the slot that belong to the frame.
    public var bytes: Int
    public var timestampSource: TimestampSource
    /// For formats with frames that build on others; nil: each stands for itself.
    public var isKeyframe: Bool?
    /// Of such formats: nanoseconds from ``monotonic``, when the picture is decoded, to when it is shown; whole
    /// microseconds, up to 16 seconds.
    public var presentationDelay: Int64
    /// Of others: how many times the middle of the device's picture is enlarged here, in thousandths: 1000 for the
    /// whole picture.
    public var zoom: Int

    public init(
        sequence: UInt64, captureSequence: UInt64, monotonic: Int64, realtime: Int64, generation: UInt64,
        dropped: UInt64, bytes: Int, timestampSource: TimestampSource, isKeyframe: Bool? = nil,
        presentationDelay: Int64 = 0, zoom: Int = 1000
    ) {
        self.sequence = sequence
        self.captureSequence = captureSequence
        self.monotonic = monotonic
        self.realtime = realtime
        self.generation = generation
        self.dropped = dropped
        self.bytes = bytes
        self.timestampSource = timestampSource
        self.isKeyframe = isKeyframe
        self.presentationDelay = presentationDelay
        self.zoom = zoom
    }

    /// A period of sound.
    ///
    /// - Parameters:
    ///   - firstFrame: the number of its first frame within the stream.
    ///   - overruns: how often the device has lost sound so far within the stream.
    ///   - isRead: the time is that at which it was read, since the driver gives none.
    public init(
        soundSequence sequence: UInt64, firstFrame: UInt64, monotonic: Int64, realtime: Int64, generation: UInt64,
        overruns: UInt64, bytes: Int, isRead: Bool
    ) {
        self.init(
            sequence: sequence, captureSequence: firstFrame, monotonic: monotonic, realtime: realtime,
            generation: generation, dropped: overruns, bytes: bytes, timestampSource: isRead ? .read : .status)
    }

    /// Of sound: the number of the first frame within the stream.
    public var firstFrame: UInt64 { captureSequence }

    /// Of sound: how often the device has lost some so far, within the stream.
    public var overruns: UInt64 { dropped }

    /// Reads the words behind a stamp, each whole; together they are only good if the stamp is still the same
    /// afterwards.
    ///
    /// nil for what no publisher writes.
    init?(_ record: UnsafeRawPointer) {
        let last = SharedWord.loadRelaxed64(record + 56)
        let flags = UInt32(truncatingIfNeeded: last >> 32)
        guard let source = TimestampSource(rawValue: flags & 3) else { return nil }
        sequence = SharedWord.loadRelaxed64(record + 8)
        captureSequence = SharedWord.loadRelaxed64(record + 16)
        monotonic = Int64(bitPattern: SharedWord.loadRelaxed64(record + 24))
        realtime = Int64(bitPattern: SharedWord.loadRelaxed64(record + 32))
        generation = SharedWord.loadRelaxed64(record + 40)
        dropped = SharedWord.loadRelaxed64(record + 48)
        bytes = Int(UInt32(truncatingIfNeeded: last))
        timestampSource = source
        let isChained = flags & 1 << 5 != 0
        isKeyframe = isChained ? flags & 1 << 6 != 0 : nil
        presentationDelay = isChained ? Int64(flags >> 8) * 1000 : 0
        zoom = isChained ? 1000 : max(1000, Int(flags >> 8 & Self.mostZoom))
    }

    func write(to record: UnsafeMutableRawPointer) {
        SharedWord.storeRelaxed64(record + 8, sequence)
        SharedWord.storeRelaxed64(record + 16, captureSequence)
        SharedWord.storeRelaxed64(record + 24, UInt64(bitPattern: monotonic))
        SharedWord.storeRelaxed64(record + 32, UInt64(bitPattern: realtime))
        SharedWord.storeRelaxed64(record + 40, generation)
        SharedWord.storeRelaxed64(record + 48, dropped)
        SharedWord.storeRelaxed64(record + 56, UInt64(UInt32(clamping: bytes)) | UInt64(flags) << 32)
    }

    private static let mostZoom: UInt32 = 1 << 17 - 1
    /// Microseconds.
    private static let longestDelay: UInt32 = 1 << 24 - 1

    private var flags: UInt32 {
        var flags = timestampSource.rawValue
        if let isKeyframe {
            // Frames that build on others are never enlarged.
            let delay = min(UInt32(clamping: (presentationDelay + 500) / 1000), Self.longestDelay)
            flags |= 1 << 5 | (isKeyframe ? 1 << 6 : 0) | delay << 8
        } else if zoom > 1000 {
            flags |= min(UInt32(clamping: zoom), Self.mostZoom) << 8
        }
        return flags
    }
}
