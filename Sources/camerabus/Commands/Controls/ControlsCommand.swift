import ArgumentParser
import BusClient
import JSON

struct ControlsCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "controls", abstract: "Lists the controls of a device with their ranges and values.",
        discussion: """
            First the controls of the capture model that the camera has, with what they take; they mean the same on every camera. Then \
            the driver's own: types and flags are V4L2's, in v4l2-ctl's words; units are the driver's. Below a menu are its items, each of which \
            'camerabus set' takes by its number or its name.

            With --json: {"controls": […], "cameraControls": […], "supports": {…}}, as device.controls answers.

            EXAMPLES:
              camerabus controls cam0
              camerabus controls cam0 --json | jq '.controls[] | select(.flags | index("inactive"))'
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    func run(_ client: Client) async throws {
        let answer = try await client.call("device.controls", ["device": .string(device)], timeout: timeout)
        if options.json { return try Output.json(answer) }
        let camera = answer["cameraControls"]?.array ?? []
        if !camera.isEmpty {
            try Self.cameraTable(camera).print()
            try Output.line("")
        }
        let table = Self.table(answer["controls"]?.array ?? [])
        if table.isEmpty { return Output.note("\(device) has no controls.") }
        try table.print()
    }

    static func cameraTable(_ controls: [JSONValue]) -> Table {
        var table = Table("NAME", "TAKES", "VALUE")
        for control in controls {
            let takes = control["readOnly"] == true ? "(read-only)" : CameraControlValueText(control).range
            table.add(ValueText.plain(control["name"]), takes, ValueText.assigned(control["value"]))
        }
        return table
    }

    static func table(_ controls: [JSONValue]) -> Table {
        var table = Table("NAME", "TYPE", ">MIN", ">MAX", ">STEP", ">DEFAULT", ">VALUE", "FLAGS")
        for control in controls {
            let flags = control["flags"]?.array?.compactMap(\.string) ?? []
            table.add(
                ValueText.plain(control["name"]), ValueText.plain(control["type"]),
                ValueText.plain(control["minimum"]), ValueText.plain(control["maximum"]),
                ValueText.plain(control["step"]), ValueText.plain(control["defaultValue"]),
                ValueText.plain(control["value"]), flags.joined(separator: ", "))
            for item in control["menu"]?.array ?? [] {
                table.note("\(ValueText.plain(item["index"])): \(ValueText.plain(item["name"] ?? item["value"]))")
            }
        }
        return table
    }
}
