import BusProtocol
import CaptureCore
import CaptureSources
import JSON

extension VirtualFault {
    /// Reads {fault, milliseconds?, control?, value?, frames?, percent?, partsPerMillion?, level?}.
    init(json: JSONValue) throws(BusError) {
        let milliseconds = try Self.integer("milliseconds", json, 0...3_600_000)
        switch json["fault"]?.string {
        case "stall": self = .stall(milliseconds: milliseconds)
        case "crash": self = .crash
        case "busy": self = .busy(milliseconds: milliseconds)
        case "slow":
            guard let milliseconds else { throw .invalidParams("milliseconds", "is required for slow") }
            self = .slow(milliseconds: milliseconds)
        case "refuse": self = .refuse(control: json["control"]?.string)
        case "meddle":
            guard let control = json["control"]?.string else {
                throw .invalidParams("control", "is required for meddle")
            }
            self = .meddle(control: control, value: try ControlValue(json: json["value"] ?? .null, path: "value"))
        case "unplug": self = .unplug
        case "replug": self = .replug
        case "corrupt": self = .corrupt(frames: try Self.integer("frames", json, 1...1_000_000) ?? 1)
        case "noSpace": self = .noSpace(milliseconds: milliseconds)
        case "rate":
            guard let percent = try Self.integer("percent", json, 1...1000) else {
                throw .invalidParams("percent", "is required for rate")
            }
            self = .rate(percent: percent)
        case "drift":
            guard let parts = try Self.integer("partsPerMillion", json, -100_000...100_000) else {
                throw .invalidParams("partsPerMillion", "is required for drift")
            }
            self = .drift(partsPerMillion: parts)
        case "pressure":
            guard let level = json["level"]?.string.flatMap(SystemPressureLevel.init) else {
                throw .invalidParams("level", "is required for pressure")
            }
            self = .pressure(level: level, milliseconds: milliseconds)
        case "none": self = .none
        default: throw .invalidParams("fault", "must be one of \(MethodTable.faultNames.joined(separator: ", "))")
        }
    }

    private static func integer(
        _ name: String, _ json: JSONValue, _ range: ClosedRange<Int64>
    ) throws(BusError) -> Int? {
        guard let value = json[name], !value.isNull else { return nil }
        guard let number = value.integer, range.contains(number) else {
            throw .invalidParams(name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return Int(number)
    }
}
