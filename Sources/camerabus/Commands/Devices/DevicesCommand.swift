import ArgumentParser
import BusClient
import JSON

struct DevicesCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Lists the devices: cameras and microphones.",
        discussion: """
            STATE is closed, open, streaming or disconnected; or the state of the device's worker (starting, \
            restarting, failed); or the reason why the device can't be used. MEDIA is video or audio. RATE is in \
            frames per second; for a closed device FORMAT and RATE show how it will be opened. POSITION is front or \
            back; 'camerabus session switch' changes from one to the other.

            With --json: {"devices": […]}, as device.list returns them.

            EXAMPLES:
              camerabus devices
              camerabus devices --json | jq -r '.devices[].uniqueID'
              for camera in $(camerabus devices --media video --ids); do camerabus format $camera 640x480; done
            """)

    @OptionGroup var options: GlobalOptions

    @Option(help: ArgumentHelp("List only cameras (video) or microphones (audio).", valueName: "media"))
    var media: Media?

    enum Media: String, ExpressibleByArgument, CaseIterable { case video, audio }

    @Flag(help: "Print only the ids, one per line.")
    var ids = false

    func run(_ client: Client) async throws {
        let answer = try await client.call(
            "device.list", media.map { JSONValue.object(["media": .string($0.rawValue)]) } ?? [:], timeout: timeout)
        let devices = answer["devices"]?.array ?? []
        if ids {
            for device in devices { try Output.line(ValueText.plain(device["id"])) }
        } else if options.json {
            try Output.json(answer)
        } else if devices.isEmpty {
            Output.note("The bus has no devices.")
        } else {
            try Self.table(devices).print()
        }
    }

    static func table(_ devices: [JSONValue]) -> Table {
        var table = Table("ID", "MEDIA", "NAME", "FORMAT", ">RATE", "STATE", "POSITION", "LOCKED BY")
        for device in devices {
            table.add(
                ValueText.plain(device["id"]), ValueText.plain(device["mediaType"]),
                ValueText.plain(device["name"]), ValueText.format(device["activeFormat"]),
                ValueText.rate(ofDuration: device["frameDuration"]),
                ValueText.state(device), position(device), ValueText.holder(device["lock"]?["holder"]))
        }
        return table
    }

    private static func position(_ device: JSONValue) -> String {
        device["position"] == "unspecified" ? "-" : ValueText.plain(device["position"])
    }
}
