import ArgumentParser
import BusClient
import JSON

struct FormatsCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "formats", abstract: "Lists the formats of a device.",
        discussion: """
            SIZE is in pixels. RATES are in frames per second, of a microphone in samples per second and channel. \
            'a–b' is a range. '*' marks the active format. If the device reports them, ZOOM is the largest zoom \
            factor, ISO and EXPOSURE (in seconds) are ranges, and FIELD is the field of view.

            With --json: {"formats": […]}, as device.formats returns them; durations are fractions of a second there, \
            such as "1/30".

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
        if formats.contains(where: { $0["sampleFormat"] != nil }) { return soundTable(formats, active: active) }
        // Drivers tell nothing of these; who does, tells it of all rows.
        let isRich = formats.contains { $0["videoMaxZoomFactor"]?.double != nil || $0["minISO"]?.double != nil }
        var table =
            isRich
            ? Table("", "ID", "PIXELS", "SIZE", "RATES", ">ZOOM", "ISO", "EXPOSURE", ">FIELD", "NAME")
            : Table("", "ID", "PIXELS", "SIZE", "RATES", "NAME")
        for format in formats where isRich {
            let isActive = active.map { !$0.isNull && $0 == format["id"] } ?? false
            table.add(
                isActive ? "*" : "", ValueText.plain(format["id"]), ValueText.plain(format["pixelFormat"]),
                ValueText.size(format), ValueText.rates(format["frameRates"]),
                ValueText.plain(format["videoMaxZoomFactor"]), ValueText.span(format["minISO"], format["maxISO"]),
                ValueText.span(format["minExposureDuration"], format["maxExposureDuration"]),
                format["videoFieldOfView"]?.double.map { "\(JSONValue($0))°" } ?? "-",
                ValueText.plain(format["title"]))
        }
        for format in formats where !isRich {
            let isActive = active.map { !$0.isNull && $0 == format["id"] } ?? false
            table.add(
                isActive ? "*" : "", ValueText.plain(format["id"]), ValueText.plain(format["pixelFormat"]),
                ValueText.size(format), ValueText.rates(format["frameRates"]), ValueText.plain(format["title"]))
        }
        return table
    }

    private static func soundTable(_ formats: [JSONValue], active: JSONValue?) -> Table {
        var table = Table("", "ID", "SAMPLES", "CHANNELS", "RATES")
        for format in formats {
            let isActive = active.map { !$0.isNull && $0 == format["id"] } ?? false
            let rates = (format["rates"]?.array ?? []).map { ValueText.plain($0) }.joined(separator: ", ")
            let range = format["rateRange"]
            table.add(
                isActive ? "*" : "", ValueText.plain(format["id"]), ValueText.plain(format["sampleFormat"]),
                ValueText.span(format["channels"]?["min"], format["channels"]?["max"]),
                range?["min"] == nil ? rates : ValueText.span(range?["min"], range?["max"]))
        }
        return table
    }
}
