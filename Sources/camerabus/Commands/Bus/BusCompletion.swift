import ArgumentParser
import BusClient
import BusProtocol
import JSON
import Synchronization

/// Completes words that only the bus knows. The script of a shell calls this program for them; see ``prepare(_:)``.
enum BusCompletion {
    private struct Facts {
        var devices: [String] = []
        /// As `device.controls` and `device.formats` describe them, of the device that the command line names.
        var controls: [JSONValue] = []
        var formats: [JSONValue] = []
    }

    private static let facts = Mutex(Facts())

    static let controlNames = CompletionKind.custom { _, _, _ in
        facts.withLock(\.controls).compactMap { $0["name"]?.string }
    }

    /// `brightness=`, and the name alone of a button.
    static let controlAssignments = CompletionKind.custom { _, _, _ in
        facts.withLock(\.controls).filter { $0["readOnly"] != true }.compactMap { control in
            control["name"]?.string.map { control["type"] == "button" ? $0 : "\($0)=" }
        }
    }

    static let pixelFormats = CompletionKind.custom { _, _, _ in
        var codes: [String] = []
        for case let code? in facts.withLock(\.formats).map({ $0["pixelFormat"]?.string }) where !codes.contains(code) {
            codes.append(code)
        }
        return codes
    }

    static let topics = CompletionKind.custom { _, _, _ in
        let devices = facts.withLock(\.devices)
        let fixed =
            ["state/", "event/"]
            + ["device/", "lock/", "session/", "movie/", "take/", "authorization/"].flatMap {
                ["state/\($0)", "event/\($0)"]
            }
        return fixed + ["state/bus/", "state/rig/", "heartbeat/"]
            + ["state", "event"].flatMap { kind in devices.map { "\(kind)/device/\($0)/" } }
    }

    /// Whether that is a script's question.
    static func isAsked(_ arguments: [String]) -> Bool { arguments.first == "---completion" }

    /// Asks the bus for what will be offered, before the parser is to answer the script: it can't wait for a bus.
    ///
    /// - Parameter arguments: `---completion`, the command, `--`, which argument, two numbers, then the command line's
    ///   words.
    static func prepare(_ arguments: [String]) async {
        guard let words = words(arguments), let command = words.positional.first,
            let client = try? await Client.connect(
                runtimeDirectory: words.runtimeDirectory, name: "camerabus", timeout: patience)
        else { return }
        let device = words.positional.dropFirst().first
        var found = Facts()
        switch (command, device) {
        case ("get", let device?), ("set", let device?):
            let answer = try? await client.call("device.controls", ["device": .string(device)], timeout: patience)
            found.controls = (answer?["cameraControls"]?.array ?? []) + (answer?["controls"]?.array ?? [])
        case ("format", let device?): found.formats = (try? await client.formats(device, timeout: patience)) ?? []
        case ("watch", _):
            let devices = (try? await client.devices(timeout: patience)) ?? []
            found.devices = devices.compactMap { $0["id"]?.string }
        default: break
        }
        let result = found
        facts.withLock { $0 = result }
    }

    // The user waits for the key press to complete.
    private static let patience = Duration.seconds(2)

    private static func words(_ arguments: [String]) -> (positional: [String], runtimeDirectory: String?)? {
        guard let separator = arguments.firstIndex(of: "--"), separator + 5 < arguments.endIndex else { return nil }
        var positional: [String] = []
        var runtimeDirectory: String?
        // Behind which argument it is, its number and the cursor's place: the program's name, then what was typed.
        var words = arguments[(separator + 5)...]
        while let word = words.popFirst() {
            if word == "--runtime-dir" {
                runtimeDirectory = words.popFirst()
            } else if word == "--timeout" || word == "--lock" {
                _ = words.popFirst()
            } else if !word.hasPrefix("-") {
                positional.append(word)
            }
        }
        return (positional, runtimeDirectory.flatMap { $0.isEmpty ? nil : $0 })
    }
}
