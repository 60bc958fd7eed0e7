import ArgumentParser
import BusClient
import JSON

struct ControlsCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "controls", abstract: "Lists the controls of a device with their ranges and values.",
        discussion: """
            The first table lists the standard controls that this camera supports, and their allowed values. Standard \
            controls mean the same on every camera. The second table lists the driver's own controls. Their types and \
            flags have the names that v4l2-ctl uses; units depend on the driver. The items of a menu are listed below \
            it; pass the number or the name of an item to 'camerabus set'.

            With --json: the result of the method device.controls. "cameraControls" are the standard controls, \
            "controls" the driver's own, and "supports" has all standard controls, false if this camera lacks one.

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
