import ArgumentParser
import BusClient
import JSON

struct SetCommand: DeviceCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Changes one or more controls of a device. If one is not possible, none is changed.",
        discussion: """
            A value is one of: an integer (also 0x…); on or off (also yes or no, true or false); the number or name of \
            a menu item; text ("…" is always text); 1,2,3 for a control of several numbers. Name a button without a \
            value to press it. One command sets at most 256 controls.

            The standard controls (focusMode, exposureDuration, …) mean the same on every camera; 'camerabus controls' \
            lists them first, with their units. Their numbers may have decimals: 0.01. Seconds may be a fraction: \
            exposureDuration=1/100. A point is x,y, each from 0 to \
            1, from the top left of the picture. Gains are red,blue. Standard controls and the driver's own controls \
            can be set together.

            With the token of a lock ('camerabus lock') in --lock or $CAMERABUS_LOCK, the command uses that lock. \
            Without one the bus locks the device for this command only, and refuses it with deviceBusy while another \
            client has locked the device. The values are printed as the bus reads them back.

            With --json: the result of the method device.set.

            EXAMPLES:
              camerabus set cam0 brightness=-10 white_balance_automatic=off
              camerabus set cam0 'power_line_frequency=50 Hz'
              camerabus set cam0 do_white_balance
              camerabus set cam0 exposureDuration=1/100 ISO=200 whiteBalanceMode=locked
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    @Argument(
        help: ArgumentHelp("A control and its new value.", valueName: "control=value"),
        completion: BusCompletion.controlAssignments,
        transform: ControlAssignment.init(reading:))
    var assignments: [ControlAssignment]

    func validate() throws {
        if assignments.isEmpty { throw ValidationError("Name at least one control and its value: control=value.") }
        if let pair = Self.pair(assignments) {
            throw ValidationError("Write \(pair) as one argument, without spaces.")
        }
        if let name = Self.duplicate(assignments) { throw ValidationError("'\(name)' is given twice.") }
    }

    func run(_ client: Client) async throws {
        let assignments = try await fitted(client)
        let values = Dictionary(assignments.map { ($0.name, $0.value) }) { first, _ in first }
        let answer = try await client.set(device, controls: values, lock: lock.lock, timeout: timeout)
        if options.json { return try Output.json(answer) }
        let applied = answer["applied"]?[device]?["controls"]
        for assignment in assignments where !assignment.value.isNull {
            try Output.line("\(assignment.name)=\(ValueText.assigned(applied?[assignment.name]))")
        }
        Adjustments.note(answer)
        PersistenceNote.note(answer)
    }

    /// Converts the values to the types of the controls. Asks the bus for the types only if a value needs that.
    private func fitted(_ client: Client) async throws -> [ControlAssignment] {
        guard assignments.contains(where: { $0.dependsOnType || CameraControlValueText.isName($0.name) }) else {
            return assignments
        }
        let answer = try await client.call("device.controls", ["device": .string(device)], timeout: timeout)
        let controls = answer["controls"]?.array ?? []
        return try assignments.map { assignment throws(Failure) in
            if let control = answer["cameraControls"]?.array?.first(where: { $0["name"]?.string == assignment.name }) {
                return ControlAssignment(
                    name: assignment.name, value: try CameraControlValueText(control).value(assignment.value))
            }
            guard let control = controls.first(where: { $0["name"]?.string == assignment.name }) else {
                return assignment
            }
            return ControlAssignment(
                name: assignment.name, value: try ControlValueText(control).value(assignment.value))
        }
    }

    /// `brightness 10`, as it is to be written; nil: there is none.
    static func pair(_ assignments: [ControlAssignment]) -> String? {
        zip(assignments, assignments.dropFirst()).first { name, value in
            name.value.isNull && value.value.isNull
                && (Double(value.name) != nil || ControlValueText.flag(value.name) != nil)
        }
        .map { ["\($0.name)=\($1.name)"].shellCommand }
    }

    static func duplicate(_ assignments: [ControlAssignment]) -> String? {
        var seen: Set<String> = []
        return assignments.first { !seen.insert($0.name).inserted }?.name
    }
}

/// The options of commands that change a device.
struct LockOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The token of a lock on the device, from 'camerabus lock' (default: $CAMERABUS_LOCK, else a lock for this "
                + "command only).",
            valueName: "token"))
    var lock: String?
}
