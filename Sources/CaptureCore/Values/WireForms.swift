public import BusProtocol
public import JSON

// How values of the model are written as JSON, and read back by the process at the other end. What is not known is
// null; members that a reader doesn't know are left alone. Errors of reading are `invalidParams` {path, why}.

extension FrameDuration {
    /// `"1/30"`.
    public var json: JSONValue { .string(description) }

    /// Reads `"1/30"`. Both parts have 32 bits, as V4L2's have (`struct v4l2_fract`).
    public init(json: JSONValue, path: String = "") throws(BusError) {
        let limit = Int(UInt32.max)
        guard let text = json.string, let duration = FrameDuration(text),
            duration.numerator <= limit, duration.denominator <= limit
        else { throw .invalidParams(path, "must be a duration in seconds as a fraction, such as \"1/30\"") }
        self = duration
    }

    /// Frames a second as a JSON number, an integer if it is one.
    public var rateJSON: JSONValue { .plain(framesPerSecond) }
}

extension PixelFormat {
    /// The name, or the code in hexadecimal where it has no name that could be read back.
    public var json: JSONValue {
        if PixelFormat(name) == self { return .string(name) }
        let digits = String(code, radix: 16)
        return .string("0x" + String(repeating: "0", count: 8 - digits.utf8.count) + digits)
    }

    public init(json: JSONValue, path: String = "") throws(BusError) {
        guard let text = json.string else { throw .invalidParams(path, "must be a pixel format such as \"YUYV\"") }
        if text.utf8.count == 10, text.hasPrefix("0x"), let code = UInt32(text.dropFirst(2), radix: 16) {
            self.init(code: code)
        } else if let format = PixelFormat(text) {
            self = format
        } else {
            throw .invalidParams(path, "must be a four-character code such as \"YUYV\"")
        }
    }
}

extension Dimensions {
    /// Beyond this no area could be counted in 64 bits.
    static let limit: Int64 = Int64(Int32.max)

    /// {width, height}
    public var json: JSONValue { .object(["width": JSONValue(width), "height": JSONValue(height)]) }

    /// nil when it is something else.
    public init?(json: JSONValue) {
        let sides = 1...Self.limit
        guard let width = json["width"]?.integer, let height = json["height"]?.integer, sides.contains(width),
            sides.contains(height)
        else { return nil }
        self.init(width: Int(width), height: Int(height))
    }

    init(from reader: inout MemberReader, width: String = "width", height: String = "height") throws(BusError) {
        self.init(
            width: Int(try reader.integer(width, in: 1...Self.limit)),
            height: Int(try reader.integer(height, in: 1...Self.limit)))
    }
}

extension FormatSelection {
    /// {pixelFormat, width, height, variant?}
    public var json: JSONValue {
        .members([
            "pixelFormat": pixelFormat.json, "width": JSONValue(dimensions.width),
            "height": JSONValue(dimensions.height), "variant": variant.map(JSONValue.string),
        ])
    }

    public init(json: JSONValue, path: String = "") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        self.init(
            pixelFormat: try PixelFormat(
                json: try reader.required("pixelFormat"), path: reader.path(of: "pixelFormat")),
            dimensions: try Dimensions(from: &reader),
            variant: reader.known("variant") == nil ? nil : try reader.string("variant"))
    }
}

extension FrameRateRange {
    /// {minFrameDuration, maxFrameDuration, stepFrameDuration?, minFrameRate, maxFrameRate}: durations as fractions,
    /// rates as numbers.
    public var json: JSONValue {
        .members([
            "minFrameDuration": minFrameDuration.json, "maxFrameDuration": maxFrameDuration.json,
            "stepFrameDuration": step?.json, "minFrameRate": maxFrameDuration.rateJSON,
            "maxFrameRate": minFrameDuration.rateJSON,
        ])
    }

    public init(json: JSONValue, path: String = "") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        self.init(
            minFrameDuration: try reader.duration("minFrameDuration"),
            maxFrameDuration: try reader.duration("maxFrameDuration"),
            step: reader.known("stepFrameDuration") == nil ? nil : try reader.duration("stepFrameDuration"))
        if minFrameDuration > maxFrameDuration {
            throw .invalidParams(path, "minFrameDuration is longer than maxFrameDuration")
        }
    }
}

extension DimensionRange {
    /// {minWidth, maxWidth, stepWidth, minHeight, maxHeight, stepHeight}
    public var json: JSONValue {
        .object([
            "minWidth": JSONValue(minimum.width), "maxWidth": JSONValue(maximum.width),
            "stepWidth": JSONValue(step.width), "minHeight": JSONValue(minimum.height),
            "maxHeight": JSONValue(maximum.height), "stepHeight": JSONValue(step.height),
        ])
    }

    public init(json: JSONValue, path: String = "") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        self.init(
            minimum: try Dimensions(from: &reader, width: "minWidth", height: "minHeight"),
            maximum: try Dimensions(from: &reader, width: "maxWidth", height: "maxHeight"),
            step: try Dimensions(from: &reader, width: "stepWidth", height: "stepHeight"))
        if minimum.width > maximum.width || minimum.height > maximum.height {
            throw .invalidParams(path, "the smallest size is larger than the largest")
        }
    }
}

extension CaptureFormat {
    /// {id, pixelFormat, title, width, height, sizes, frameRates, …}: a row of `device.formats`. What isn't known is
    /// null.
    public var json: JSONValue { json { $0.json } }

    fileprivate func json(_ rateJSON: (FrameRateRange) -> JSONValue) -> JSONValue {
        let members: [String: JSONValue] = [
            "id": .string(id), "pixelFormat": pixelFormat.json, "title": .string(title),
            "width": JSONValue(dimensions.width), "height": JSONValue(dimensions.height),
            "sizes": sizes?.json ?? .null, "frameRates": .array(frameRates.map(rateJSON)),
        ]
        var all = members.merging(traits.members) { own, _ in own }
        all["variant"] = variant.map(JSONValue.string)
        return .object(all)
    }

    public init(json: JSONValue, path: String = "") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        var frameRates: [FrameRateRange] = []
        for (index, range) in try reader.array("frameRates").enumerated() {
            frameRates.append(try FrameRateRange(json: range, path: "\(reader.path(of: "frameRates"))[\(index)]"))
        }
        var sizes: DimensionRange?
        if let json = reader.known("sizes") { sizes = try DimensionRange(json: json, path: reader.path(of: "sizes")) }
        let selection = try FormatSelection(json: json, path: path)
        self.init(
            id: try reader.string("id"), pixelFormat: selection.pixelFormat, dimensions: selection.dimensions,
            sizes: sizes, frameRates: frameRates, title: try reader.string("title"),
            traits: try FormatTraits(from: &reader), variant: selection.variant)
    }
}

extension DeviceIdentity {
    /// uniqueID, localizedName, mediaType, type, position, node, driver, bus: what `device.list` shows of it beside the
    /// id.
    public var members: [String: JSONValue] {
        [
            "uniqueID": .string(uniqueID), "localizedName": .string(localizedName),
            "mediaType": .string(mediaType.rawValue), "type": .string(type.rawValue),
            "position": .string(position.rawValue), "node": node.map(JSONValue.string) ?? .null,
            "driver": .string(driver), "bus": .string(bus),
        ]
    }

    public var json: JSONValue { .object(members) }

    public init(json: JSONValue, path: String = "") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        self.init(
            uniqueID: try reader.string("uniqueID"), localizedName: try reader.string("localizedName"),
            mediaType: try reader.word("mediaType"), type: try reader.word("type"),
            position: try reader.word("position"), node: reader.known("node") == nil ? nil : try reader.string("node"),
            driver: try reader.string("driver"), bus: try reader.string("bus"))
    }
}

extension DeviceDescription {
    /// {identity, formats, controls, orientation, mirrored}
    public var json: JSONValue {
        // Thousands of them, and a dozen that differ.
        var rates: [FrameRateRange: JSONValue] = [:]
        func json(_ rate: FrameRateRange) -> JSONValue {
            if let known = rates[rate] { return known }
            let json = rate.json
            rates[rate] = json
            return json
        }
        return .object([
            "identity": identity.json, "formats": .array(formats.map { $0.json(json) }),
            "controls": .array(controls.map { $0.json(value: nil) }),
            "orientation": JSONValue(orientation.quarters * 90), "mirrored": .bool(orientation.isMirrored),
        ])
    }

    public init(json: JSONValue, path: String = "") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        let identity = try DeviceIdentity(json: try reader.required("identity"), path: reader.path(of: "identity"))
        var formats: [CaptureFormat] = []
        for (index, format) in try reader.array("formats").enumerated() {
            formats.append(try CaptureFormat(json: format, path: "\(reader.path(of: "formats"))[\(index)]"))
        }
        var controls: [CaptureControl] = []
        for (index, control) in try reader.array("controls").enumerated() {
            controls.append(try CaptureControl(json: control, path: "\(reader.path(of: "controls"))[\(index)]"))
        }
        self.init(
            identity: identity, formats: formats, controls: controls, orientation: PictureOrientation(described: json))
    }
}
