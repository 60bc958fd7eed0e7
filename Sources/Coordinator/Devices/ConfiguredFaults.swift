import BusProtocol
import JSON
import Settings

extension Configuration {
    /// `[faults]`: the script of one virtual camera.
    static func faultScript(_ device: String, _ json: JSONValue) throws(ParseError) -> JSONValue {
        let schema = Schema.array(of: .reference("FaultStep"), min: 1, max: 256)
        if let error = schema.validate(json, path: "faults.\(device)") { throw ParseError(description: error.message) }
        return json
    }
}
