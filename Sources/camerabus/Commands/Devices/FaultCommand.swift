import ArgumentParser
import BusClient
import BusProtocol
import JSON
import LinuxIO

struct FaultCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "fault", abstract: "Makes a virtual device misbehave, to see how programs take it.",
        discussion: """
            For administrators. Real cameras are left alone. FAULT is one of:

              unplug   gone, for --ms or until replug
              replug   there again; a replay that has ended begins anew
              stall    no frames for --ms, or for good
              busy     the next start, or all for --ms, as if another program had the camera
              noSpace  starts find no room on the bus, for --ms or for good
              slow     each change takes --ms
              refuse   the next change, or that of --control, is refused
              meddle   another program sets --control to --value
              corrupt  the next frame, or --frames of them, are damaged
              rate     frames come at --percent of the rate that was set
              drift    the device's clock runs fast by --ppm parts in a million
              pressure the device says that it is under pressure of --level, for --ms or for good
              crash    the device's process ends
              none     ends all of these

            A script is a JSON array of steps such as {"at": 500, "fault": "stall", "milliseconds": 200}, with times in milliseconds \
            from its start; the device has one at a time. --list tells what became of its steps.

            With --json: the answer of fault.inject, fault.script, fault.list or fault.cancel.

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

    @Argument(help: "What it is to suffer.", completion: .list(MethodTable.faultNames))
    var fault: String?

    @Option(help: ArgumentHelp("For how long.", valueName: "milliseconds"))
    var ms: Int?

    @Option(help: ArgumentHelp("The control that is meant.", valueName: "name"))
    var control: String?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("What it is set to, as for 'camerabus set'.", valueName: "value"))
    var value: String?

    @Option(help: ArgumentHelp("How many.", valueName: "count"))
    var frames: Int?

    @Option(help: ArgumentHelp("Of the rate that was set, 1 to 1000.", valueName: "number"))
    var percent: Int?

    @Option(parsing: .unconditional, help: ArgumentHelp("Parts in a million; below zero: slow.", valueName: "number"))
    var ppm: Int?

    @Option(
        help: ArgumentHelp(
            "How much pressure: nominal, fair, serious, critical, or shutdown, which stops the device.",
            valueName: "level"),
        completion: .list(["nominal", "fair", "serious", "critical", "shutdown"]))
    var level: String?

    @Option(
        help: ArgumentHelp("Begin the script in that file; '-' reads it from standard input.", valueName: "file"),
        completion: .file())
    var script: String?

    @Flag(help: "Tell of the script that runs, or ran last.")
    var list = false

    @Flag(help: "End the script: what is not due yet will not come.")
    var cancel = false

    func validate() throws {
        let tasks = [fault != nil, script != nil, list, cancel].count { $0 }
        guard tasks == 1 else { throw ValidationError("Give one of a fault, --script, --list and --cancel.") }
        if let fault {
            guard MethodTable.faultNames.contains(fault) else {
                throw ValidationError(
                    "There is no fault '\(fault)'; it is one of \(MethodTable.faultNames.joined(separator: ", ")).")
            }
        } else if ms != nil || control != nil || value != nil || frames != nil || percent != nil || ppm != nil
            || level != nil
        {
            throw ValidationError("What a fault is like stands in the script.")
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
