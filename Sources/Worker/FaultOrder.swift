import BusProtocol
import CaptureCore
import CaptureSources
import JSON

extension VirtualFault {
    /// Reads {fault, milliseconds?, control?, value?}.
    init(json: JSONValue) throws(BusError) {
        var milliseconds: Int?
        if let value = json["milliseconds"], !value.isNull {
            guard let number = value.integer, (0...3_600_000).contains(number) else {
                throw .invalidParams("milliseconds", "must be 0 to 3600000")
            }
            milliseconds = Int(number)
        }
        switch json["fault"]?.string {
        case "stall": self = .stall(milliseconds: milliseconds)
        case "crash": self = .crash
        case "busy": self = .busy
        case "slow":
            guard let milliseconds else { throw .invalidParams("milliseconds", "is needed for slow") }
            self = .slow(milliseconds: milliseconds)
        case "refuse": self = .refuse(control: json["control"]?.string)
        case "meddle":
            guard let control = json["control"]?.string else { throw .invalidParams("control", "is needed for meddle") }
            self = .meddle(control: control, value: try ControlValue(json: json["value"] ?? .null, path: "value"))
        case "none": self = .none
        default: throw .invalidParams("fault", "must be one of stall, crash, busy, slow, refuse, meddle, none")
        }
    }
}
