import ArgumentParser
import BusClient
import JSON

struct SetCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Changes controls of a device, all of them or none.",
        discussion: """
            A value is an integer (also 0x…), true or false, the number or name of a menu's item, or text; "…" is text in any case, and \
            1,2,3 is for controls of several numbers. A button is pressed by its name alone. All of them are set, or none; 256 at most.

            The lock is the one of --lock or $CAMERABUS_LOCK; without one the bus takes a lock for just this call, and refuses with \
            deviceBusy while another client has the device locked. What became of the values is printed, as read back.

            With --json: the answer of device.set.

            EXAMPLES:
              camerabus set cam0 brightness=10 white_balance_automatic=false
              camerabus set cam0 'power_line_frequency=50 Hz'
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    @Argument(help: ArgumentHelp("What to change.", valueName: "control=value"))
    var assignments: [ControlAssignment]

    func validate() throws {
        if let name = Self.duplicate(assignments) { throw ValidationError("'\(name)' is given twice.") }
    }

    func run(_ client: Client) async throws {
        let values = Dictionary(assignments.map { ($0.name, $0.value) }) { first, _ in first }
        let answer = try await client.set(device, controls: values, lock: lock.lock, timeout: timeout)
        if options.json { return try Output.json(answer) }
        let applied = answer["applied"]?[device]?["controls"]
        for assignment in assignments where !assignment.value.isNull {
            try Output.line("\(assignment.name)=\(Describing.plain(applied?[assignment.name]))")
        }
        Adjustments.note(answer)
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

/// What the bus gave instead of what was asked for.
enum Adjustments {
    static func note(_ answer: JSONValue) {
        for adjusted in answer["adjusted"]?.array ?? [] {
            Output.note(
                "adjusted: \(Describing.plain(adjusted["path"])): \(Describing.plain(adjusted["given"])) instead of "
                    + "\(Describing.plain(adjusted["asked"])) (\(Describing.plain(adjusted["why"])))")
        }
    }
}
