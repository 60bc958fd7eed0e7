import JSON

/// Writes what `level/<device>/` says, within one stream, into memory that it keeps.
public struct SoundLevelWriter: Sendable {
    private var writer: JSONWriter
    private let constantBytes: Int

    public init(device: String, stream: String) {
        var writer = JSONWriter(capacity: 512)
        writer.raw(#"{"v":1,"device":"#)
        writer.string(device)
        writer.raw(#","stream":"#)
        writer.string(stream)
        writer.raw(#","sequence":"#)
        constantBytes = writer.bytes.count
        self.writer = writer
    }

    /// Writes the next message; ``bytes`` then gives it.
    ///
    /// - Parameters:
    ///   - monotonic: the end of what was measured: CLOCK_MONOTONIC, nanoseconds.
    ///   - average: the mean power of each channel, dBFS; below ``SoundLevel/floor`` it is that.
    ///   - peak: the loudest sample of each channel, likewise.
    public mutating func write(
        sequence: UInt64, monotonic: Int64, average: some Collection<Double>, peak: some Collection<Double>
    ) {
        writer.truncate(to: constantBytes)
        writer.unsigned(sequence)
        writer.raw(#","monotonic":"#)
        writer.integer(monotonic)
        writer.raw(#","average":"#)
        Self.write(average, to: &writer)
        writer.raw(#","peak":"#)
        Self.write(peak, to: &writer)
        writer.raw("}")
    }

    public var bytes: [UInt8] { writer.bytes }

    private static func write(_ levels: some Collection<Double>, to writer: inout JSONWriter) {
        writer.raw("[")
        var isFirst = true
        for level in levels {
            if !isFirst { writer.raw(",") }
            isFirst = false
            // Digital silence is minus infinity.
            let clamped = level.isNaN ? SoundLevel.floor : min(0, max(SoundLevel.floor, level))
            let hundredths = UInt64((-clamped * 100).rounded())
            if hundredths > 0 { writer.raw("-") }
            writer.thousandths(hundredths * 10)
        }
        writer.raw("]")
    }
}
