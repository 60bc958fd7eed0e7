import BusProtocol
import JSON

/// What somebody asks of a camera control, once it is known to be of the right kind.
enum CameraControlValue: Equatable {
    case word(String)
    case flag(Bool)
    case number(Double)
    case point(x: Double, y: Double)
    case gains(red: Double, blue: Double)
    case rectangle(PixelRectangle)
}

/// Reads what is asked of camera controls.
struct CameraControlParser {
    let map: CameraControlMap
    let mode: ConfigurationMode

    /// All words of the model, also those that this camera hasn't got.
    static func words(_ name: CameraControlName) -> [String] {
        switch name {
        case .focusMode: ["locked", "autoFocus", "continuousAutoFocus"]
        case .exposureMode: ["locked", "autoExpose", "continuousAutoExposure", "custom"]
        case .whiteBalanceMode: ["locked", "autoWhiteBalance", "continuousAutoWhiteBalance"]
        case .flashMode, .torchMode: ["off", "on", "auto"]
        case .videoStabilizationMode: ["off", "standard", "cinematic", "auto"]
        case .sceneMode: CameraControlMap.scenes
        default: []
        }
    }

    /// - Returns: the value, and why it is another than was asked, if it is.
    /// - Throws: `controlUnsupported`, `controlReadOnly`, `controlOutOfRange`, or `invalidParams` for one of another
    ///   kind.
    func parse(
        _ name: CameraControlName, _ json: JSONValue, path: String
    ) throws(BusError) -> (CameraControlValue, adjusted: String?) {
        guard let kind = map.kind(name) else {
            let supported = map.controls.filter { !$0.name.isReadOnly }.map(\.name.rawValue)
            throw BusError(
                .controlUnsupported, "This camera has no \(name.rawValue); device.controls lists its controls.",
                ["control": .string(name.rawValue), "supported": JSONValue(supported)])
        }
        if name.isReadOnly {
            throw BusError(
                .controlReadOnly, "\(name.rawValue) is read-only.", ["control": .string(name.rawValue)])
        }
        switch kind {
        case .word(let words): return (.word(try word(name, json, words, path)), nil)
        case .flag:
            guard let flag = json.bool ?? Self.flag(json) else {
                throw .invalidParams(path, "must be true or false, not \(json.typeName)")
            }
            return (.flag(flag), nil)
        case .number(let minimum, let maximum, let values):
            let isTime = name.unit == "s"
            guard let asked = json.double ?? (isTime ? Self.seconds(json) : nil), asked.isFinite else {
                throw .invalidParams(
                    path,
                    isTime && json.string != nil
                        ? "must be seconds, as a number or as a fraction such as \"1/100\""
                        : "must be a number, not \(json.typeName)")
            }
            let (value, why) = try fitted(name, asked, minimum, maximum, values)
            return (.number(value), why)
        case .point:
            let x = try member(json, "x", path, 0, 1, of: name)
            let y = try member(json, "y", path, 0, 1, of: name)
            try refuseOthers(json, ["x", "y"], path)
            return (.point(x: x, y: y), nil)
        case .gains(let red, let blue):
            let gains = (
                try member(json, "red", path, 0, red, of: name), try member(json, "blue", path, 0, blue, of: name)
            )
            if json["green"] != nil { _ = try member(json, "green", path, 1, 1, of: name) }
            try refuseOthers(json, ["red", "green", "blue"], path)
            return (.gains(red: gains.0, blue: gains.1), nil)
        case .rectangle(let bounds, _):
            guard json.object != nil, let rectangle = PixelRectangle(json: json) else {
                throw .invalidParams(path, "must be {x, y, width, height}, in whole pixels")
            }
            try refuseOthers(json, ["x", "y", "width", "height"], path)
            guard bounds.contains(rectangle) else { throw .outside(bounds, rectangle, of: name.rawValue) }
            return (.rectangle(rectangle), nil)
        }
    }

    // A fraction, as exposures are written: 1/100.
    private static func seconds(_ json: JSONValue) -> Double? { json.string.flatMap { FrameDuration($0)?.seconds } }

    private static func flag(_ json: JSONValue) -> Bool? {
        switch json.integer {
        case 0: false
        case 1: true
        default: nil
        }
    }

    private func word(
        _ name: CameraControlName, _ json: JSONValue, _ words: [String], _ path: String
    ) throws(BusError) -> String {
        let known = Self.words(name)
        guard let word = json.string, known.contains(word) else {
            throw .invalidParams(path, "must be one of \(known.joined(separator: ", "))")
        }
        guard words.contains(word) else {
            throw BusError(
                .controlUnsupported,
                "This camera's \(name.rawValue) can't be \(word); it can be \(words.joined(separator: ", ")).",
                ["control": .string(name.rawValue), "supported": JSONValue(words)])
        }
        return word
    }

    // A number that any driver rounds to its next step is not another one.
    private func fitted(
        _ name: CameraControlName, _ asked: Double, _ minimum: Double, _ maximum: Double, _ values: [Double]
    ) throws(BusError) -> (Double, adjusted: String?) {
        let clamped = min(max(asked, minimum), maximum)
        let nearest = values.min { abs($0 - clamped) < abs($1 - clamped) } ?? clamped
        if abs(nearest - asked) <= 1e-6 * max(abs(asked), 1e-6) { return (nearest, nil) }
        guard mode == .nearest else { throw outOfRange(name, asked, minimum, maximum, values) }
        let why =
            values.isEmpty || clamped != asked
            ? "\(name.rawValue) is between \(JSONValue.tidy(minimum)) and \(JSONValue.tidy(maximum)) here."
            : "\(name.rawValue) has only some values."
        return (nearest, why)
    }

    private func outOfRange(
        _ name: CameraControlName, _ asked: Double, _ minimum: Double, _ maximum: Double, _ values: [Double]
    ) -> BusError {
        var data: [String: JSONValue] = [
            "control": .string(name.rawValue), "min": .tidy(minimum), "max": .tidy(maximum), "step": 0,
        ]
        var range = "\(JSONValue.tidy(minimum)) to \(JSONValue.tidy(maximum))"
        if !values.isEmpty {
            data["values"] = .array(values.map(JSONValue.tidy))
            range = values.map { "\(JSONValue.tidy($0))" }.joined(separator: ", ")
        }
        return BusError(
            .controlOutOfRange, "\(name.rawValue) can't be \(JSONValue.tidy(asked)) here; it takes \(range).", data)
    }

    private func member(
        _ json: JSONValue, _ member: String, _ path: String, _ minimum: Double, _ maximum: Double,
        of name: CameraControlName
    ) throws(BusError) -> Double {
        guard json.object != nil else {
            throw .invalidParams(path, "must be an object of numbers, not \(json.typeName)")
        }
        guard let number = json[member]?.double, number.isFinite else {
            throw .invalidParams("\(path).\(member)", "must be a number")
        }
        guard number >= minimum, number <= maximum else {
            throw outOfRange(name, number, minimum, maximum, [])
        }
        return number
    }

    private func refuseOthers(_ json: JSONValue, _ known: Set<String>, _ path: String) throws(BusError) {
        if let stranger = json.object?.keys.filter({ !known.contains($0) }).min() {
            throw .invalidParams("\(path).\(stranger)", "is not a known member")
        }
    }
}
