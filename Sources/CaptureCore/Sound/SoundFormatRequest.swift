import BusProtocol
public import JSON

/// The format that somebody asks of a microphone: what is left out stays as it is, as far as there is such a format.
public struct SoundFormatRequest: Hashable, Sendable {
    public var sampleFormat: SampleFormat?
    /// Frames a second.
    public var rate: Int?
    public var channels: Int?

    public init(sampleFormat: SampleFormat? = nil, rate: Int? = nil, channels: Int? = nil) {
        self.sampleFormat = sampleFormat
        self.rate = rate
        self.channels = channels
    }

    private static let names = ["sampleFormat", "rate", "channels"]

    /// Whether an object can only be this.
    static func isMeant(by json: JSONValue) -> Bool { names.contains { json[$0] != nil } }

    static func parse(_ json: JSONValue, path: String) throws(BusError) -> Self {
        var reader = try MemberReader(json, path: path)
        var request = Self()
        if reader.value("sampleFormat") != nil { request.sampleFormat = try reader.word("sampleFormat") }
        if reader.value("rate") != nil { request.rate = Int(try reader.integer("rate", in: 1...768_000)) }
        if reader.value("channels") != nil { request.channels = Int(try reader.integer("channels", in: 1...1024)) }
        try reader.refuseOthers()
        return request
    }

    /// {sampleFormat?, rate?, channels?}
    public var json: JSONValue {
        .members([
            "sampleFormat": (sampleFormat?.rawValue).map(JSONValue.string), "rate": rate.map { JSONValue($0) },
            "channels": channels.map { JSONValue($0) },
        ])
    }
}
