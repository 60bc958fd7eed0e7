import ArgumentParser
import BusClient
import BusProtocol
import Glibc
import JSON

struct LevelsCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "levels", abstract: "Shows the level of a microphone, ten times a second.",
        discussion: """
            One bar per channel, from -60 dBFS to full scale: '#' up to the average (the mean power), '|' at the peak \
            (the loudest sample), then both as numbers. On a terminal the line is updated in place; elsewhere one line \
            per tenth of a second is printed. Ctrl-C ends it.

            With --json: one line per level, {device, stream, sequence, monotonic, average, peak}, with one value per \
            channel in dBFS, not below -160.

            EXAMPLES:
              camerabus levels mic0
              camerabus levels mic0 -n 10 --json | jq -c .peak
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: deviceHelp, completion: microphoneCompletion)
    var device: String

    @Option(
        name: .shortAndLong, parsing: .unconditional,
        help: ArgumentHelp("End after this many levels (default: never).", valueName: "count"))
    var number: Int?

    func validate() throws {
        if let number, number < 1 { throw ValidationError("--number takes a number greater than 0.") }
    }

    func run(_ client: Client) async throws {
        try await MicrophoneInput.noteWhoIsAsked(client, timeout: timeout)
        try await DeviceArgumentCheck.check(device, client, timeout: timeout)
        let levels = try await client.levels(device, silence: timeout, timeout: timeout)
        let isLive = !options.json && isatty(STDOUT_FILENO) == 1
        var waiting = FrameStall(device)
        var count = 0
        // The shell goes on in a line of its own.
        defer { if isLive, count > 0 { try? Output.line("") } }
        while count < number ?? .max {
            let level: SoundLevel
            do {
                level = try await levels.next()
            } catch {
                try MicrophoneInput.wait(&waiting, error, device, hasGiven: count > 0, timeout)
                continue
            }
            waiting.end()
            count += 1
            if options.json {
                try Output.json(Self.json(level))
            } else if isLive {
                try Output.bytes(Array("\r\u{1B}[K\(Self.line(level))".utf8))
            } else {
                try Output.line(Self.line(level))
            }
        }
    }

    static func json(_ level: SoundLevel) -> JSONValue {
        [
            "device": .string(level.device), "stream": .string(level.stream), "sequence": JSONValue(level.sequence),
            "monotonic": .integer(level.monotonic), "average": .array(level.average.map { .number($0) }),
            "peak": .array(level.peak.map { .number($0) }),
        ]
    }

    /// A bar of 30 characters for each channel.
    static func line(_ level: SoundLevel) -> String {
        zip(level.average, level.peak).map { average, peak in
            var bar = [Character](repeating: " ", count: width)
            for index in 0..<cells(average) { bar[index] = "#" }
            if peak > lowest { bar[min(width - 1, cells(peak))] = "|" }
            return "[\(String(bar))] \(decibels(average)) \(decibels(peak)) dB"
        }.joined(separator: "  ")
    }

    private static let width = 30
    private static let lowest = -60.0

    private static func cells(_ level: Double) -> Int {
        let share = (level - lowest) / -lowest
        return Int((min(1, max(0, share)) * Double(width)).rounded(.down))
    }

    private static func decibels(_ level: Double) -> String {
        let tenths = Int((max(level, SoundLevel.floor) * 10).rounded())
        let text = "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
        return String(repeating: " ", count: max(0, 6 - text.count)) + text
    }
}
