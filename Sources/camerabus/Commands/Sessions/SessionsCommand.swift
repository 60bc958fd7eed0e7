import ArgumentParser
import BusClient
import JSON

struct SessionsCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions", abstract: "Lists the sessions, their topics, and the decisions about them.",
        discussion: """
            A session is a client's permanent request for frames. STATE is stopped, starting, running, interrupted \
            (with the cause), or waitingForAuthorization until an administrator allows its user to see cameras; then \
            it continues by itself. The lines below a session show the topics to subscribe to, and the decisions about \
            its devices.

            With --json: {"sessions": […]}, as session.list returns them.
            """)

    @OptionGroup var options: GlobalOptions

    @Flag(help: ArgumentHelp("Print the ids only, for scripts and completion."))
    var ids = false

    func run(_ client: Client) async throws {
        let sessions = try await client.sessions(timeout: timeout)
        if ids {
            for session in sessions { try Output.line(ValueText.plain(session["id"])) }
        } else if options.json {
            try Output.json(["sessions": .array(sessions)])
        } else if sessions.isEmpty {
            Output.note("There are no sessions.")
        } else {
            try Self.table(sessions).print()
        }
    }

    static func table(_ sessions: [JSONValue]) -> Table {
        var table = Table("ID", "NAME", "OWNER", "STATE", "PRESET", ">PRIORITY", "INPUTS", ">SINCE")
        for session in sessions {
            table.add(
                ValueText.plain(session["id"]), ValueText.plain(session["name"]),
                session["detached"] == true ? "detached" : ValueText.holder(session["owner"]),
                ValueText.plain(session["state"]), ValueText.plain(session["preset"]),
                ValueText.plain(session["priority"]), inputs(session), ValueText.age(session["since"]))
            let notes = notes(
                session, resolved: session["resolved"], hardwareCost: session["hardwareCost"],
                explanation: session["explanation"])
            for line in notes { table.note(line) }
        }
        return table
    }

    private static func inputs(_ session: JSONValue) -> String {
        let devices = session["inputs"]?.array?.compactMap { $0["device"]?.string } ?? []
        return devices.isEmpty ? "-" : devices.joined(separator: ", ")
    }

    /// The notes below the row of a session: interruption, error, topics of its outputs, cost on USB, and explanation.
    static func notes(
        _ session: JSONValue, resolved: JSONValue?, hardwareCost: JSONValue?, explanation: JSONValue?
    ) -> [String] {
        var lines: [String] = []
        if let interruption = session["interruption"], !interruption.isNull {
            lines.append("\(ValueText.plain(interruption["reason"])): \(ValueText.plain(interruption["message"]))")
        }
        if let error = session["error"], !error.isNull {
            lines.append("\(ValueText.plain(error["reason"])): \(ValueText.plain(error["message"]))")
        }
        lines += session["inputs"]?.array?.compactMap(line(ofInput:)) ?? []
        for delivery in resolved?.array ?? [] { lines.append(line(delivery)) }
        if let cost = hardwareCost?.double, cost > 0 {
            lines.append(
                "hardwareCost: \(ValueText.plain(hardwareCost)) (1 is the whole bandwidth of a USB bus for cameras)")
        }
        return lines + (explanation?.array?.compactMap(\.string) ?? [])
    }

    /// `cam0 delivers YUYV 640x480, 30 frames/s, bt709 video, turn by 90`; nil while it delivers nothing.
    static func line(ofInput input: JSONValue) -> String? {
        guard let stated = input["formatDescription"], !stated.isNull else { return nil }
        let description = ValueText.formatDescription(stated)
        return "\(ValueText.plain(input["device"])) delivers \(description)"
    }

    /// `videoData: frame/cam0/bgr:640x480@15/ (640x480, 15 frames/s)`, `audioData: audio/mic0/s16:48000x2/ (s16, 48000
    /// Hz x2)`
    static func line(_ delivery: JSONValue) -> String {
        let why = delivery["why"]?.string.map { "; \($0)" } ?? ""
        if delivery["device"] == .null { return "\(ValueText.plain(delivery["output"])): -\(why)" }
        let topic = delivery["topic"]?.string ?? "\(ValueText.plain(delivery["device"]))"
        if delivery["mediaType"] == "audio" {
            let sound = ["sampleFormat", "rate", "channels"].map { ValueText.plain(delivery[$0]) }
            return "\(ValueText.plain(delivery["output"])): \(topic) (\(sound[0]), \(sound[1]) Hz x\(sound[2]))\(why)"
        }
        let size = "\(ValueText.plain(delivery["width"]))x\(ValueText.plain(delivery["height"]))"
        let rate = delivery["frameRate"]?.double.map { ", \(ValueText.rate($0)) frames/s" } ?? ""
        return "\(ValueText.plain(delivery["output"])): \(topic) (\(size)\(rate))\(why)"
    }
}
