import ArgumentParser
import BusClient
import JSON

struct FormatsCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "formats", abstract: "Lists the formats of a device.",
        discussion: """
            SIZE is in pixels, RATES in frames a second; 'a–b' is everything between. The active format is marked with '*'.

            With --json: {"formats": […]}, as device.formats answers; there durations are fractions of a second, "1/30".

            EXAMPLES:
              camerabus formats cam0
              camerabus formats cam0 --json | jq -r '.formats[] | "\\(.pixelFormat) \\(.width)x\\(.height)"'
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    func run(_ client: Client) async throws {
        let answer = try await client.call("device.formats", ["device": .string(device)], timeout: timeout)
        if options.json { return try Output.json(answer) }
        let active = try await client.device(device, timeout: timeout)["activeFormat"]?["id"]
        try Self.table(answer["formats"]?.array ?? [], active: active).print()
    }

    static func table(_ formats: [JSONValue], active: JSONValue?) -> Table {
        var table = Table("", "ID", "PIXELS", "SIZE", "RATES", "NAME")
        for format in formats {
            let isActive = active.map { !$0.isNull && $0 == format["id"] } ?? false
            table.add(
                isActive ? "*" : "", Describing.plain(format["id"]), Describing.plain(format["pixelFormat"]),
                Describing.size(format), Describing.rates(format["frameRates"]), Describing.plain(format["title"]))
        }
        return table
    }
}
