public import JSON

/// How loud a microphone is: what `level/<device>/` says, ten times a second.
public struct SoundLevel: Hashable, Sendable {
    public var device: String
    /// A random id, new at each start of the stream.
    public var stream: String
    /// Counts the messages of this topic within `stream`, from 0.
    public var sequence: UInt64
    /// The end of what was measured: CLOCK_MONOTONIC, nanoseconds.
    public var monotonic: Int64
    /// The mean power of each channel, in decibels below full scale (dBFS): 0 at most.
    public var average: [Double]
    /// The loudest sample of each channel, likewise.
    public var peak: [Double]

    /// The lowest level that is told: digital silence.
    public static let floor = -160.0

    /// Reads a message; unknown members are ignored.
    ///
    /// - Throws: what the publisher sent in place of levels, if the header holds `error`; `versionUnsupported`;
    ///   `internalError` for one that lacks a member.
    public init(_ json: JSONValue) throws(BusError) {
        guard json["v"]?.integer == 1 else {
            throw BusError(
                .versionUnsupported, "This level is of version \(json["v"] ?? .null), not 1.", ["supported": [1]])
        }
        if let error = json["error"] { throw BusError(header: error) }
        guard let device = json["device"]?.string, let stream = json["stream"]?.string,
            let sequence = json["sequence"]?.integer.flatMap({ UInt64(exactly: $0) }),
            let monotonic = json["monotonic"]?.integer, let average = json["average"]?.array?.compactMap(\.double),
            let peak = json["peak"]?.array?.compactMap(\.double), !peak.isEmpty, average.count == peak.count
        else { throw BusError(.internalError, "This level lacks required members.") }
        self.device = device
        self.stream = stream
        self.sequence = sequence
        self.monotonic = monotonic
        self.average = average
        self.peak = peak
    }
}
