import ArgumentParser
import BusClient
import BusProtocol
import JSON
import LinuxIO

struct FaultCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "fault", abstract: "Makes a virtual device fail, to test how programs react.",
        discussion: """
            Only for administrators, and only for virtual devices: real cameras refuse it. FAULT is one of:

              unplug   the device disconnects, for --ms or until replug
              replug   the device is connected again; an ended replay (a movie played as a camera) starts again
              stall    no frames, for --ms or until 'none'
              busy     the next start fails, or all starts for --ms, as if another program used the camera
              noSpace  starts fail because the USB bus has no bandwidth, for --ms or until 'none'
              slow     each change of settings takes --ms
              refuse   the next change of settings fails, or the next change of --control
              meddle   another program sets --control to --value
              corrupt  the next frame, or the next --frames frames, are damaged
              rate     frames arrive at --percent of the rate that was set
              drift    the clock of the device is fast by --ppm parts per million
              pressure the device reports pressure of --level, for --ms or until 'none'
              crash    the process of the device ends
              none     ends all of these; a script continues (--cancel ends it)

            A script is a JSON array of steps such as {"at": 500, "fault": "stall", "milliseconds": 200}. Times are \
            milliseconds from the start of the script. A device has one script at a time. --list shows the result of \
            each step.

            With --json: the result of the method fault.inject, fault.script, fault.list or fault.cancel.

            EXAMPLES:
              camerabus fault cam0 unplug --ms 3000
              camerabus fault cam0 drift --ppm 200
              camerabus fault cam0 pressure --level shutdown --ms 5000
              echo '[{"at": 0, "fault": "unplug"}, {"at": 2000, "fault": "replug"}]' | camerabus fault cam0 --script -
              camerabus fault cam0 --list
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    @Argument(help: "The fault, one of the list above.", completion: .list(MethodTable.faultNames))
    var fault: String?

    @Option(help: ArgumentHelp("The duration.", valueName: "milliseconds"))
    var ms: Int?

    @Option(help: ArgumentHelp("The control of refuse or meddle.", valueName: "name"))
    var control: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The new value of --control, as for 'camerabus set'.", valueName: "value"))
    var value: String?

    @Option(help: ArgumentHelp("The number of damaged frames.", valueName: "count"))
    var frames: Int?

    @Option(help: ArgumentHelp("Percent of the rate that was set, 1 to 1000.", valueName: "number"))
    var percent: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Parts per million; a negative number makes the clock slow.", valueName: "number"))
    var ppm: Int?

    @Option(
        help: ArgumentHelp(
            "The level of pressure: nominal, fair, serious, critical, or shutdown, which stops the device.",
            valueName: "level"),
        completion: .list(["nominal", "fair", "serious", "critical", "shutdown"]))
    var level: String?

    @Option(
        help: ArgumentHelp("Start the script in this file; '-' reads it from standard input.", valueName: "file"),
        completion: .file())
    var script: String?

    @Flag(help: "Show the script that runs, or ran last.")
    var list = false

    @Flag(help: "End the script. Steps that are not due yet are cancelled.")
    var cancel = false

    func validate() throws {
        let tasks = [fault != nil, script != nil, list, cancel].count { $0 }
        guard tasks == 1 else { throw ValidationError("Give exactly one of: a fault, --script, --list, --cancel.") }
        if let fault {
            guard MethodTable.faultNames.contains(fault) else {
                throw ValidationError(
                    "There is no fault '\(fault)'. Faults: \(MethodTable.faultNames.joined(separator: ", ")).")
            }
        } else if ms != nil || control != nil || value != nil || frames != nil || percent != nil || ppm != nil
            || level != nil
        {
            throw ValidationError(
                "With --script, --list and --cancel no other options of a fault are allowed. Write them into the "
                    + "script."
            )
        }
    }

    func run(_ client: Client) async throws {
        let (method, params) = try request()
        let answer = try await client.request(method, params, timeout: timeout).result
        if options.json { return try Output.json(answer) }
        if list { return try print(answer["script"] ?? .null) }
        if cancel, answer["cancelled"]?.bool != true { Output.note("No step was waiting.") }
    }

    private func request() throws -> (method: String, params: JSONValue) {
        let device = JSONValue.string(device)
        if list { return ("fault.list", ["device": device]) }
        if cancel { return ("fault.cancel", ["device": device]) }
        if let script {
            let path = script == "-" ? "/dev/stdin" : script
            let text = String(decoding: try File.read(path, limit: BusLimits.maxRequestBytes), as: UTF8.self)
            guard let steps = try? JSONValue(parsing: text), steps.array != nil else {
                throw Failure(status: ExitStatus.usage, description: "The script must be a JSON array of steps.")
            }
            return ("fault.script", ["device": device, "steps": steps])
        }
        var params: [String: JSONValue] = ["device": device, "fault": .string(fault ?? "")]
        let numbers = [("milliseconds", ms), ("frames", frames), ("percent", percent), ("partsPerMillion", ppm)]
        for case (let name, let number?) in numbers { params[name] = JSONValue(number) }
        if let level { params["level"] = .string(level) }
        if let control { params["control"] = .string(control) }
        if let value { params["value"] = ControlAssignment.value(value) ?? .string(value) }
        return ("fault.inject", .object(params))
    }

    private func print(_ script: JSONValue) throws {
        guard let steps = script["steps"]?.array else { return Output.note("There is no script.") }
        var table = Table("AT", "FAULT", "STATE", "WHY")
        for step in steps {
            table.add(
                ValueText.plain(step["at"]), ValueText.plain(step["fault"]), ValueText.plain(step["state"]),
                step["why"].map { ValueText.plain($0) } ?? "")
        }
        try table.print()
    }
}
