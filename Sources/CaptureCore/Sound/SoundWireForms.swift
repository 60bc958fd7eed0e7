public import BusProtocol
public import JSON

extension SoundFormat {
    /// {id, sampleFormat, rate, channels, periodFrames}
    ///
    /// - Parameter id: of the row of the format table; nil: it is in none.
    public func json(id: String?) -> JSONValue {
        [
            "id": id.map(JSONValue.string) ?? .null, "sampleFormat": .string(sampleFormat.rawValue),
            "rate": JSONValue(rate), "channels": JSONValue(channels), "periodFrames": JSONValue(periodFrames),
        ]
    }

    /// Reads what ``json(id:)`` writes, but for the id.
    public init(json: JSONValue, path: String = "") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        self.init(
            sampleFormat: try reader.word("sampleFormat"), rate: Int(try reader.integer("rate", in: 1...768_000)),
            channels: Int(try reader.integer("channels", in: 1...1024)),
            periodFrames: Int(try reader.integer("periodFrames", in: 0...Int64(Int32.max))))
    }

    /// The same sound, however much of it comes at once.
    public func isSame(as other: SoundFormat) -> Bool {
        sampleFormat == other.sampleFormat && rate == other.rate && channels == other.channels
    }
}

extension MicrophoneFormat {
    /// {id, sampleFormat, channels, rates, rateRange, periodFrames}, ranges as {min, max}; rateRange may be null.
    public var json: JSONValue {
        [
            "id": .string(id), "sampleFormat": .string(sampleFormat.rawValue), "channels": Self.range(channels),
            "rates": .array(rates.map { JSONValue($0) }), "rateRange": rateRange.map(Self.range) ?? .null,
            "periodFrames": Self.range(periodFrames),
        ]
    }

    private static func range(_ range: ClosedRange<Int>) -> JSONValue {
        ["min": JSONValue(range.lowerBound), "max": JSONValue(range.upperBound)]
    }
}

extension SoundDataSource {
    /// {id, name, orientation}
    public var json: JSONValue {
        [
            "id": .string(id), "name": .string(name),
            "orientation": (orientation?.rawValue).map(JSONValue.string) ?? .null,
        ]
    }
}

extension MicrophoneDescription {
    /// {id…, formats, controls, dataSources}
    public var json: JSONValue {
        [
            "uniqueID": .string(identity.uniqueID), "name": .string(identity.localizedName),
            "mediaType": .string(identity.mediaType.rawValue), "formats": .array(formats.map(\.json)),
            "controls": .array(controls.map { $0.json(value: nil) }),
            "dataSources": .array(dataSources.map(\.json)),
        ]
    }

    /// The row of the table that has this format; nil if none has.
    public func formatID(of format: SoundFormat) -> String? { formats.first { $0.isRow(of: format) }?.id }
}
