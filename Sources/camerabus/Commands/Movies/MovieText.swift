import BusClient
import JSON

/// What is said of movies, in people's words.
enum MovieText {
    /// How far one is: `0:12.3  24.6 MB  369 frames  load 12 %`.
    static func progress(_ state: MovieState) -> String {
        var words = [time(state.recordedDuration), ByteSize.text(state.recordedFileSize), "\(state.frames) frames"]
        if state.dropped > 0 { words.append("\(state.dropped) dropped") }
        if state.reconnects > 0 { words.append("\(state.reconnects) reconnects") }
        if !state.waitingFor.isEmpty { words.append("waits for \(state.waitingFor.joined(separator: ", "))") }
        if state.isConnected == false { words.append("the server is away") }
        words.append("load \(Int((min(max(state.encoderLoad, 0), 1) * 100).rounded())) %")
        if state.state != "recording" { words.append(state.state) }
        return words.joined(separator: "  ")
    }

    /// How one ended: `take.mp4: 0:12.3, 24.6 MB, 369 frames`.
    static func summary(_ ending: MovieEnding) -> String {
        let dropped = ending.dropped > 0 ? ", \(ending.dropped) dropped" : ""
        return
            "\(time(ending.duration)), \(ByteSize.text(ending.size)), \(ending.frames) frames\(dropped)"
    }

    /// Whether one that this program records ended as it was asked to: at a limit, or when it was interrupted. A whole file that somebody else
    /// has ended is shorter than it was to be.
    static func isWanted(_ ending: MovieEnding, isInterrupted: Bool) -> Bool {
        ending.isSuccess && (isInterrupted || limits.contains(ending.reason))
    }

    private static let limits: Set = [
        "maximumDurationReached", "maximumFileSizeReached", "minimumFreeDiskSpaceReached",
    ]

    /// What to say of an end that is none that was asked for.
    static func failure(_ ending: MovieEnding) -> String {
        let why = ending.message ?? sentences[ending.reason] ?? "The movie has ended."
        return "\(ending.reason): \(why)"
            + (ending.isKept && !ending.path.isEmpty ? " What was recorded until then plays: \(ending.path)" : "")
    }

    /// What to say of a success that came by itself; nil: nothing.
    static func remark(_ ending: MovieEnding) -> String? { successes[ending.reason] }

    private static let successes = [
        "maximumFileSizeReached": "The file is as large as it may become.",
        "minimumFreeDiskSpaceReached": "The disk has no more room than is to stay free.",
        "shuttingDown": "The bus was shut down.",
        "ownerGone": "The program that had begun it has ended, or was cut off from the bus.",
    ]

    private static let sentences = [
        "stopped": "Another program has ended the movie.",
        "shuttingDown": "It ended with the bus.",
        "diskFull": "The disk is full.",
        "deviceLost": "A camera or a microphone of the movie has not come back in time.",
        "formatChanged": "The camera was set to another format.",
        "unauthorized": "The permission was taken back.",
        "recorderCrashed": "The process that wrote the file died.",
        "writeFailed": "The file could not be written.",
    ]

    /// `0:12.3`, `1:02:05.0`.
    static func time(_ duration: Duration) -> String {
        let tenths = max(
            0, duration.components.seconds * 10 + duration.components.attoseconds / 100_000_000_000_000_000)
        let (seconds, rest) = tenths.quotientAndRemainder(dividingBy: 10)
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let minutes = seconds / 60
        let start = minutes < 60 ? "\(minutes)" : "\(minutes / 60):\(two(minutes % 60))"
        return "\(start):\(two(seconds % 60)).\(rest)"
    }
}
