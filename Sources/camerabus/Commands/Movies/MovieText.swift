import BusClient
import JSON

/// Texts about movies.
enum MovieText {
    /// How far one is: `0:12.3  24.6 MB  369 frames  load 12 %`.
    static func progress(_ state: MovieState) -> String {
        var words = [time(state.recordedDuration), ByteSize.text(state.recordedFileSize), "\(state.frames) frames"]
        if state.dropped > 0 { words.append("\(state.dropped) dropped") }
        if state.reconnects > 0 { words.append("\(state.reconnects) reconnects") }
        if !state.waitingFor.isEmpty { words.append("waiting for \(state.waitingFor.joined(separator: ", "))") }
        if state.isConnected == false { words.append("not connected to the server") }
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

    /// Whether a movie of this program ended as requested: at a limit or by an interruption. A movie that somebody else
    /// stopped is shorter than requested.
    static func isWanted(_ ending: MovieEnding, isInterrupted: Bool) -> Bool {
        ending.isSuccess && (isInterrupted || limits.contains(ending.reason))
    }

    private static let limits: Set = [
        "maximumDurationReached", "maximumFileSizeReached", "minimumFreeDiskSpaceReached", "libraryQuotaReached",
    ]

    /// The message for an end that was not requested.
    static func failure(_ ending: MovieEnding) -> String {
        let why = ending.message ?? sentences[ending.reason] ?? "The movie has ended."
        return "\(ending.reason): \(why)"
            + (ending.isKept && !ending.path.isEmpty ? " The movie until then is kept: \(ending.path)" : "")
    }

    /// The message for an end after which another movie continues.
    static func continuation(_ ending: MovieEnding) -> String {
        let why = ending.isSuccess ? sentences[ending.reason] ?? "" : failure(ending)
        return "\(why) The recording continues in another file.".trimmingPrefix(" ").description
    }

    /// What became of the camera's pictures; nil: the event says nothing that is known.
    static func change(_ event: JSONValue, _ device: String) -> String? {
        guard let width = event["source"]?["width"]?.integer, let height = event["source"]?["height"]?.integer else {
            return nil
        }
        return "\(device) delivers \(width)x\(height) now. The movie keeps its size: these pictures are scaled, with "
            + "black borders if their shape is different."
    }

    /// A remark about an end at a limit; nil: none.
    static func remark(_ ending: MovieEnding) -> String? { successes[ending.reason] }

    private static let successes = [
        "maximumFileSizeReached": "The file has reached its maximum size.",
        "minimumFreeDiskSpaceReached": "The disk has reached the minimum of free space.",
        "libraryQuotaReached":
            "Your recordings have reached what each user may have in the library. 'camerabus library delete ID' makes "
            + "room.",
        "shuttingDown": "The bus was shut down.",
        "ownerGone": "The program that started it has ended or lost its connection to the bus.",
    ]

    private static let sentences = [
        "stopped": "Another program stopped the movie.",
        "shuttingDown": "The bus was shut down.",
        "diskFull": "The disk is full.",
        "deviceLost": "A camera or microphone of the movie did not come back in time.",
        "formatChanged": "The camera's pictures have another size or format, which this file can't hold.",
        "unauthorized": "The permission was revoked.",
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
