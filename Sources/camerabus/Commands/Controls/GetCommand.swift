import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct GetCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Shows the values of a device's controls.",
        discussion: """
            For one control only its value is printed. For several, or without a name for all, one 'control=value' per \
            line is printed, as 'camerabus set' takes them. Controls without a value (buttons, write-only controls) \
            are printed only if you name them, as '-'.

            With --json: {"control": value, …}.

            EXAMPLES:
              camerabus get cam0 brightness
              camerabus get cam0 --settable > saved
              xargs -d '\\n' camerabus set cam0 < saved
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    @Argument(help: "The controls' names (default: all).", completion: BusCompletion.controlNames)
    var controls: [String] = []

    @Flag(help: "Leave out controls that can't be set now: read-only, inactive, grabbed and disabled ones.")
    var settable = false

    func run(_ client: Client) async throws {
        let answer = try await client.call("device.controls", ["device": .string(device)], timeout: timeout)
        var known = answer["controls"]?.array ?? []
        // All that there is to set is among the driver's.
        if settable {
            known.removeAll { !Self.isSettable($0) }
        } else {
            known = (answer["cameraControls"]?.array ?? []) + known
        }
        let values = try Self.choose(controls, of: known, device: device)
        if options.json {
            return try Output.json(.object(Dictionary(values.map { ($0.name, $0.value) }) { first, _ in first }))
        }
        if controls.count == 1, let only = values.first { return try Output.line(ValueText.assigned(only.value)) }
        for (name, value) in values { try Output.line("\(name)=\(Self.settable(value))") }
    }

    /// - Throws: `controlUnsupported` for a name that the device doesn't have.
    static func choose(
        _ names: [String], of controls: [JSONValue], device: String
    ) throws(ClientError) -> [(name: String, value: JSONValue)] {
        let known = controls.compactMap { control in
            control["name"]?.string.map { (name: $0, value: control["value"] ?? .null) }
        }
        if names.isEmpty { return known.filter { !$0.value.isNull } }
        var chosen: [(name: String, value: JSONValue)] = []
        for name in names {
            guard let control = known.first(where: { $0.name == name }) else {
                let message = "\(device) has no control '\(name)'; 'camerabus controls \(device)' lists its controls."
                throw .refused(
                    BusError(.controlUnsupported, message, ["supported": JSONValue(known.map(\.name))]))
            }
            chosen.append(control)
        }
        return chosen
    }

    static func isSettable(_ control: JSONValue) -> Bool {
        let obstacles: Set = ["read-only", "inactive", "grabbed", "disabled"]
        return obstacles.isDisjoint(with: control["flags"]?.array?.compactMap(\.string) ?? [])
    }

    /// The value as ``ControlAssignment`` reads it back.
    static func settable(_ value: JSONValue) -> String {
        guard let text = value.string else { return ValueText.assigned(value) }
        return ControlAssignment.value(text) == value ? text : value.description
    }
}
