import BusClient
import BusProtocol
import JSON

/// Error messages for the command line: the bus words its own messages for the protocol.
struct ErrorText {
    /// The command that was typed: `format`.
    private let command: String
    /// The device that it is about.
    private let device: String?

    init(command: String, device: String? = nil) { (self.command, self.device) = (command, device) }

    func text(_ error: ClientError) -> String {
        switch error {
        case .refused(let refusal): "\(refusal.word): \(sentence(refusal))"
        case .timedOut(_, let milliseconds):
            "The bus did not answer within \(ValueText.rate(Double(milliseconds) / 1000)) s. "
                + "Use --timeout to wait longer, or 'camerabus doctor' to find the cause."
        case .connectionLost: "The bus ended before it answered. It is unknown whether the request was carried out."
        default: error.description
        }
    }

    private func sentence(_ error: BusError) -> String {
        // Who calls methods by name speaks the protocol.
        if command == "call", error.reason != .methodNotFound { return error.message }
        let device = error.data["device"]?.string
        switch error.reason {
        case .deviceBusy:
            return
                "\(device ?? "The device") is locked by \(ValueText.holder(error.data["holder"])). \(waiting(device))"
        case .lockTimeout:
            let holder = error.data["holder"].flatMap { $0.isNull ? nil : $0 }
            let whose = holder.map { "is still locked by \(ValueText.holder($0))" } ?? "was not released in time"
            return
                "\(device ?? "The device") \(whose). Use a longer --wait; 'camerabus locks' lists the clients that "
                + "wait."
        case .lockRequired:
            if command == "lock" { return error.message }
            guard let device else { return "This needs a lock on the device: \(locking("DEVICE"))." }
            return "The lock in --lock or $CAMERABUS_LOCK does not cover \(device). Lock all devices with one command: "
                + "'camerabus lock \(device) OTHER -- COMMAND'."
        case .lockLost:
            guard error.data["fence"] != nil else { return error.message }
            return "The lock in --lock or $CAMERABUS_LOCK has ended or never existed. Take a new one with "
                + "\(locking(device ?? "DEVICE")), or use no lock (unset CAMERABUS_LOCK)."
        case .deviceNotFound:
            return error.message
        case .controlUnsupported:
            guard let device = device ?? self.device else { return error.message }
            return Self.beforeSemicolon(error.message) + "; 'camerabus controls \(device)' lists its controls."
        case .sessionNotFound:
            return Self.beforeSemicolon(error.message) + "; 'camerabus sessions' lists them."
        case .takeNotFound:
            return Self.beforeSemicolon(error.message) + "; 'camerabus take list' lists them."
        case .recordingInProgress, .notRecording, .sessionNotRunning: return aboutMovies(error)
        case .diskFull where command == "record":
            return error.message + " --min-free can only raise how much of the disk must stay free."
        case .formatUnsupported where command == "format" && error.data["nearest"].map { !$0.isNull } ?? false,
            .frameRateUnsupported where command == "format":
            return "\(error.message) Use --nearest to accept the nearest one."
        case .photoFormatUnavailable:
            let device = device ?? self.device ?? "DEV"
            let isRaw = error.data["available"]?["photo"]?.array?.isEmpty == false
            let instead = error.data["available"]?["raw"]?.array?.isEmpty == false ? "; --format dng takes it raw" : ""
            return Self.beforeSemicolon(error.message)
                + "\(instead); 'camerabus format \(device) --pixel \(isRaw ? "RG12" : "YUYV")' chooses "
                + "\(isRaw ? "a raw" : "another") format, and 'camerabus formats \(device)' lists all."
        case .momentNotHeld where error.data["preRoll"]?.integer == 0:
            return Self.beforeSemicolon(error.message)
                + "; camerabus session run \(device ?? self.device ?? "DEV") --preset inputPriority "
                + #"--output '{"type": "photo", "preRoll": 2000}' runs one that does."#
        case .limitExceeded where command == "photo" && error.data["limit"]?.string?.hasPrefix("photoRepl") ?? false:
            return "\(error.message) Use --library to store them in the library of the bus instead."
        case .limitExceeded where error.data["limit"] == "libraryQuota":
            return error.message.replacing(
                "(library.delete)", with: "('camerabus library' lists them, 'camerabus library delete ID' deletes)")
        case .invalidParams: return invalid(error)
        case .methodNotFound:
            return command == "call"
                ? "\(Self.beforeSemicolon(error.message)); 'camerabus call bus.methods' lists the methods."
                : "This bus does not support that. It may be older than this program; 'camerabus status' shows its "
                    + "version."
        case .unauthorized where error.data["needed"] == "admin" && error.message.contains(" is for administrators: "):
            return
                "Only administrators may do that: root, the user that runs the bus, "
                + "or from another machine a key with the role admin."
        default: return error.message
        }
    }

    /// What the protocol has methods for there are commands for.
    private func aboutMovies(_ error: BusError) -> String {
        let message = error.message
        func word(_ name: String) -> String { error.data[name]?.string ?? "ID" }
        for (words, advice) in [
            ("movie.list ", "'camerabus movies' lists the movies that are being recorded."),
            ("movie.stop ", "'camerabus movies stop \(word("movie"))' ends it."),
            ("stop it first", "'camerabus movies stop \(word("movie"))' ends it."),
            ("pause it first", "'camerabus take pause \(word("take"))' ends the segment."),
            ("session.start ", "'camerabus session start \(word("session"))' starts it."),
        ] where message.contains(words) { return "\(Self.beforeSemicolon(message)); \(advice)" }
        return message
    }

    private func waiting(_ device: String?) -> String {
        let wait =
            ["lock", "format"].contains(command)
            ? "Use --wait SECONDS to wait for it"
            : "Use 'camerabus lock \(device ?? "DEVICE") --wait SECONDS -- COMMAND' to wait for it"
        return "\(wait); 'camerabus who \(device ?? "DEVICE")' shows its users."
    }

    private func locking(_ device: String) -> String { "'camerabus lock \(device) -- COMMAND'" }

    /// What is wrong, and with what: `changes[0].controls.gain` is gain, and what an option says is that option.
    private func invalid(_ error: BusError) -> String {
        guard let why = error.data["why"]?.string, let path = error.data["path"]?.string else { return error.message }
        if let option = Self.options[command]?[path] {
            let typed = #"camerabus session configure ID '{"addOutput": "movie"}' adds one"#
            return "\(option): \(why.replacing(#"session.configure {addOutput: "movie"} adds one"#, with: typed))."
        }
        if command == "photo", path.hasSuffix("livePhotoCaptureEnabled") {
            return "--live is not possible: \(why.replacing("can't be true: ", with: ""))."
        }
        if command == "photo", path == "settings.livePhoto", why.contains("livePhotoCaptureEnabled") {
            return "--live \(Self.beforeSemicolon(why)); "
                + #"camerabus session configure ID '{"setOutput": {"output": "photo", "livePhotoCaptureEnabled": true}}'"#
                + " enables them."
        }
        let members = path.split(separator: ".").map { $0.prefix { $0 != "[" } }
        if let index = members.firstIndex(of: "controls"), index + 1 < members.count {
            return "\(members[(index + 1)...].joined(separator: ".")) \(why)."
        }
        let last = members.last.map(String.init) ?? ""
        if command == "photo", members.first == "settings", members.count > 1 {
            return "\(Self.option(String(members[1]))) \(why)."
        }
        // An action is typed as it goes over the bus.
        switch members.first == "actions" || members.first == "action" ? "" : last {
        case "activeFormat", "pixelFormat", "width", "height": return "The format: \(why)."
        case "frameRate": return "--fps \(why)."
        case "lock", "wait", "lease", "note": return "--\(last) \(why)."
        default: return "\(subject(path))\(why)."
        }
    }

    // `highResolution` is --high-resolution.
    private static func option(_ member: String) -> String {
        if member == "livePhoto" { return "--live" }
        if member == "raw" { return "--format" }
        if member == "maxPhotoDimensions" { return "--size" }
        return "--" + member.map { $0.isUppercase ? "-\($0.lowercased())" : String($0) }.joined()
    }

    /// What is typed for a member of the params, by command.
    private static let options: [String: [String: String]] = [
        "record": [
            "path": "-o", "url": "--to", "microphone": "--mic", "fileType": "--type", "codec": "--codec",
            "frameRate": "--fps", "fragmentInterval": "--fragment", "maxDuration": "--duration",
            "maxFileSize": "--max-size", "minFreeDiskSpace": "--min-free", "stabilization": "--stabilization",
            "detached": "--detach",
        ],
        "take": [
            "path": "-o", "name": "--name", "session": "--session", "microphone": "--mic", "minDuration": "--min",
            "maxDuration": "--max", "exportPreset": "--preset",
        ],
    ]

    private func subject(_ path: String) -> String {
        guard !path.isEmpty else { return "" }
        // What the protocol calls steps is a script here.
        return command == "fault" && path.hasPrefix("steps") ? "script\(path.dropFirst(5)): " : "\(path): "
    }

    private static func beforeSemicolon(_ message: String) -> Substring { message.prefix { $0 != ";" } }
}

/// The values that the bus set instead of the requested ones.
enum Adjustments {
    static func note(_ answer: JSONValue) {
        for adjusted in answer["adjusted"]?.array ?? [] { Output.note("adjusted: \(line(adjusted))") }
    }

    /// `frame rate: 25 frames/s instead of 22.5: This format has no such rate.`
    static func line(_ adjusted: JSONValue) -> String {
        let path = adjusted["path"]?.string ?? ""
        let (given, asked) = (adjusted["given"], adjusted["asked"])
        let why = Table.printable(adjusted["why"]?.string.map { ": \($0)" } ?? "")
        if path.hasSuffix("frameRate") {
            return "frame rate: \(rate(given)) frames/s instead of \(rate(asked))\(why)"
        }
        if path.hasSuffix("activeFormat") { return "format: \(format(given)) instead of \(format(asked))\(why)" }
        let name = path.firstRange(of: "controls.").map { String(path[$0.upperBound...]) } ?? path
        return "\(name): \(ValueText.plain(given)) instead of \(ValueText.plain(asked))\(why)"
    }

    // A rate, a duration, or two durations.
    private static func rate(_ value: JSONValue?) -> String {
        if let rate = value?.double { return ValueText.rate(rate) }
        guard let value, value.object != nil else { return ValueText.rate(ofDuration: value) }
        let rates = ["maxFrameDuration", "minFrameDuration"].map { ValueText.rate(ofDuration: value[$0]) }
        return rates[0] == rates[1] ? rates[0] : rates.joined(separator: "–")
    }

    private static func format(_ value: JSONValue?) -> String {
        guard let value, let width = value["width"]?.integer, let height = value["height"]?.integer else {
            return ValueText.plain(value)
        }
        return (value["pixelFormat"]?.string.map { "\($0) " } ?? "") + "\(width)x\(height)"
    }
}
