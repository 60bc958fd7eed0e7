import ArgumentParser
import BusClient
import JSON

struct SetCommand: DeviceCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Changes controls of a device, all of them or none.",
        discussion: """
            A value is an integer (also 0x…), on or off (yes or no, true or false), the number or name of a menu's item, or text; "…" is \
            text in any case, and 1,2,3 is for controls of several numbers. A button is pressed by its name alone. All of them are set, or none; 256 at most.

            Controls of the capture model (focusMode, exposureDuration, …) are those that 'camerabus controls' lists first: \
            numbers there may have fractions, a point is x,y and gains are red,blue. They and the driver's may be mixed.

            The lock is the one of --lock or $CAMERABUS_LOCK; without one the bus takes a lock for just this call, and refuses with \
            deviceBusy while another client has the device locked. What became of the values is printed, as read back.

            With --json: the answer of device.set.

            EXAMPLES:
              camerabus set cam0 brightness=-10 white_balance_automatic=off
              camerabus set cam0 'power_line_frequency=50 Hz'
              camerabus set cam0 exposureDuration=0.01 ISO=200 whiteBalanceMode=locked
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    @Argument(
        help: ArgumentHelp("What to change.", valueName: "control=value"), completion: BusCompletion.controlAssignments,
        transform: ControlAssignment.init(reading:))
    var assignments: [ControlAssignment]

    func validate() throws {
        if assignments.isEmpty { throw ValidationError("Say what to change: control=value.") }
        if let pair = Self.pair(assignments) {
            throw ValidationError("A value stands behind '=', without blanks: \(pair)")
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

    /// With the values that the controls' types want, as far as they have to be looked at for that.
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

/// What commands that change a device take.
struct LockOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The token of a lock that covers the device (default: $CAMERABUS_LOCK, else a lock of its own).",
            valueName: "token"))
    var lock: String?
}
