public import BusProtocol
public import JSON

/// The format that somebody asks for (`activeFormat`).
public enum FormatRequest: Hashable, Sendable {
    /// A row of the format table: `"f3"`, or {id}.
    case id(String)
    /// {pixelFormat?, width, height}
    case size(pixelFormat: PixelFormat?, Dimensions)
    /// Of a microphone: {sampleFormat?, rate?, channels?}
    case sound(SoundFormatRequest)

    /// Sizes up to this are understood; larger ones no camera has.
    static let largestSide: Int64 = 65535

    static func parse(_ json: JSONValue, path: String) throws(BusError) -> Self {
        if let id = json.string { return .id(id) }
        guard json.object != nil else {
            throw .invalidParams(
                path,
                "must be a format's id, {pixelFormat?, width, height} or {sampleFormat?, rate?, channels?}, not "
                    + "\(json.typeName)"
            )
        }
        var reader = try MemberReader(json, path: path)
        if reader.value("id") != nil {
            let id = try reader.string("id")
            try reader.refuseOthers()
            return .id(id)
        }
        if SoundFormatRequest.isMeant(by: json) { return .sound(try SoundFormatRequest.parse(json, path: path)) }
        var pixelFormat: PixelFormat?
        if let json = reader.value("pixelFormat") {
            pixelFormat = try PixelFormat(json: json, path: reader.path(of: "pixelFormat"))
        }
        let width = try reader.integer("width", in: 1...largestSide)
        let height = try reader.integer("height", in: 1...largestSide)
        try reader.refuseOthers()
        return .size(pixelFormat: pixelFormat, Dimensions(width: Int(width), height: Int(height)))
    }

    public var json: JSONValue {
        switch self {
        case .id(let id): .string(id)
        case .size(let pixelFormat, let size):
            .members([
                "pixelFormat": pixelFormat?.json, "width": JSONValue(size.width), "height": JSONValue(size.height),
            ])
        case .sound(let request): request.json
        }
    }
}

/// The frame rate that somebody asks for (`frameRate`).
public enum FrameRateRequest: Hashable, Sendable {
    /// Frames a second: `30`, `29.97`, `"30000/1001"`. Meant as people say it, so a rate within two parts in ten
    /// thousand is that rate.
    case rate(FrameRate)
    /// {minFrameDuration?, maxFrameDuration?}: any rate between, AVFoundation's `activeVideoMinFrameDuration` and
    /// `activeVideoMaxFrameDuration`. Equal ones are that duration.
    case range(min: FrameDuration?, max: FrameDuration?)

    /// Just this time from one frame to the next.
    public static func duration(_ duration: FrameDuration) -> Self { .range(min: duration, max: duration) }

    static func parse(_ json: JSONValue, path: String) throws(BusError) -> Self {
        if json.double != nil || json.string != nil { return .rate(try FrameRate(json: json, path: path)) }
        guard json.object != nil else {
            throw .invalidParams(
                path,
                "must be frames per second (a number, or \"30000/1001\") or {minFrameDuration, maxFrameDuration}, not "
                    + "\(json.typeName)"
            )
        }
        var reader = try MemberReader(json, path: path)
        let min = reader.value("minFrameDuration") == nil ? nil : try reader.duration("minFrameDuration")
        let max = reader.value("maxFrameDuration") == nil ? nil : try reader.duration("maxFrameDuration")
        try reader.refuseOthers()
        if min == nil, max == nil { throw .invalidParams(path, "needs minFrameDuration, maxFrameDuration or both") }
        if let min, let max, min > max {
            throw .invalidParams(path, "minFrameDuration is longer than maxFrameDuration")
        }
        return .range(min: min, max: max)
    }

    public var json: JSONValue {
        switch self {
        case .rate(let rate): rate.number
        case .range(let min, let max): .members(["minFrameDuration": min?.json, "maxFrameDuration": max?.json])
        }
    }
}

/// What is to change at one device: an element of `device.configure`'s `changes`.
public struct ConfigurationChange: Hashable, Sendable {
    public var device: String
    /// nil: stays.
    public var activeFormat: FormatRequest?
    /// nil: stays, as far as a new format has it.
    public var frameRate: FrameRateRequest?
    /// By name, as they were asked; what they mean depends on the control's type.
    public var controls: [String: JSONValue]

    public init(
        device: String, activeFormat: FormatRequest? = nil, frameRate: FrameRateRequest? = nil,
        controls: [String: JSONValue] = [:]
    ) {
        self.device = device
        self.activeFormat = activeFormat
        self.frameRate = frameRate
        self.controls = controls
    }

    /// Where a member stands in the request, as errors and adjustments name it: `changes[0].controls.gain`.
    ///
    /// - Parameter change: where the change stands: `changes[0]`; empty: its members are those of `params`.
    public static func path(of member: String, in change: String) -> String {
        change.isEmpty ? member : "\(change).\(member)"
    }

    /// Reads {device, activeFormat?, frameRate?, controls?}; unknown members are refused by name.
    ///
    /// - Parameter path: where it stands: `changes[0]`; empty: its members are those of `params`.
    public static func parse(_ json: JSONValue, path: String) throws(BusError) -> Self {
        var reader = try MemberReader(json, path: path)
        var change = Self(device: try reader.string("device"))
        if let format = reader.value("activeFormat") {
            change.activeFormat = try .parse(format, path: reader.path(of: "activeFormat"))
        }
        if let rate = reader.value("frameRate") {
            change.frameRate = try .parse(rate, path: reader.path(of: "frameRate"))
        }
        if let controls = reader.value("controls") {
            guard let controls = controls.object else {
                throw .invalidParams(reader.path(of: "controls"), "must be an object of control names and values")
            }
            change.controls = controls
        }
        try reader.refuseOthers()
        return change
    }

    /// What ``parse(_:path:)`` reads.
    public var json: JSONValue {
        .members([
            "device": .string(device), "activeFormat": activeFormat?.json, "frameRate": frameRate?.json,
            "controls": controls.isEmpty ? .none : .some(.object(controls)),
        ])
    }
}

/// What to do when a device can't have just what was asked.
public enum ConfigurationMode: String, Hashable, Sendable, CaseIterable {
    /// Refuse.
    case exact
    /// Take what comes nearest, and tell.
    case nearest
}
