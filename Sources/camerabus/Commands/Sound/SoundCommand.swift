import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct SoundCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "sound",
        abstract: "Receives sound: prints a line for each chunk, or writes a WAV file or raw samples.",
        discussion: """
            RENDITION is 'native' (the format that the microphone is set to), or s16 or f32 (16-bit integers; numbers \
            from -1 to 1), with :RATExCHANNELS for another rate or number of channels. The bus then resamples and \
            mixes once for all readers of this rendition.

            With -o FILE the sound is written to a WAV file. Its header is correct also when Ctrl-C ends the command. \
            With '-o -' the raw samples are written to standard output, interleaved, in the format of the rendition; \
            for 'native' 'camerabus format DEVICE' shows the format. Sound that was lost by the microphone or on the \
            way is counted. In a WAV file silence replaces it, so that the rest keeps its time. Without -o one line \
            per chunk is printed: its number, the seconds since the first one, the format, the frames (samples per \
            channel), and the number of frames lost before it. With --json the line is the header with "lost".

            The command ends with status 4 if no sound arrives within --timeout. Ctrl-C ends it with status 130. If a \
            microphone was unplugged or taken by another program after it had delivered sound, the command waits for \
            it for the same time, and prints the cause on standard error.

            EXAMPLES:
              camerabus sound mic0 --seconds 10 -o ten.wav
              camerabus sound mic0 s16:48000x2 -o - | aplay -f S16_LE -r 48000 -c 2
              camerabus sound mic0 f32:16000x1 -o - | recogniser
              camerabus sound mic0 --json --seconds 1 | jq .lost
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: deviceHelp, completion: microphoneCompletion)
    var device: String

    @Argument(
        help: "The format of the sound.", completion: .list(SoundRendition.Encoding.allCases.map(\.rawValue)))
    var rendition = "native"

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("End after this many seconds of sound (default: never).", valueName: "seconds"))
    var seconds: Seconds?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("A WAV file, or '-' for raw samples on standard output.", valueName: "file"),
        completion: .file())
    var output: String?

    func validate() throws {
        if let seconds, seconds.value <= 0 { throw ValidationError("--seconds takes a number greater than 0.") }
        if options.json, output == "-" {
            throw ValidationError("--json and '-o -' can't be used together: both write to standard output.")
        }
    }

    func run(_ client: Client) async throws {
        try await MicrophoneInput.noteWhoIsAsked(client, timeout: timeout)
        try await DeviceArgumentCheck.check(device, client, timeout: timeout)
        let sounds = try await client.sound(device, rendition, silence: timeout, timeout: timeout)
        var recording = SoundRecording(output: output, asJSON: options.json, seconds: seconds?.value)
        var waiting = FrameStall(device)
        do {
            while !recording.isDone {
                let chunk: SoundChunk
                do {
                    chunk = try await sounds.next()
                } catch {
                    try MicrophoneInput.wait(&waiting, error, device, hasGiven: recording.hasBegun, timeout)
                    continue
                }
                waiting.end()
                try recording.take(chunk)
            }
        } catch {
            try recording.finish()
            throw error
        }
        try recording.finish()
    }
}

/// Writes sound as it arrives.
struct SoundRecording {
    private let output: String?
    private let asJSON: Bool
    private let seconds: Double?
    private var file: WaveFile?
    private var format: WaveFile.Format?
    private var start: Int64?
    private var frames = 0
    private var lost: UInt64 = 0

    /// Longer gaps are not filled with silence.
    private static let longestSilence = 60

    init(output: String?, asJSON: Bool, seconds: Double?) {
        (self.output, self.asJSON, self.seconds) = (output, asJSON, seconds)
    }

    var hasBegun: Bool { format != nil }

    /// Whether the requested length is reached.
    var isDone: Bool {
        guard let seconds, let format else { return false }
        return frames >= wanted(seconds, format)
    }

    private func wanted(_ seconds: Double, _ format: WaveFile.Format) -> Int {
        Int((seconds * Double(format.rate)).rounded())
    }

    /// - Throws: ``Failure`` when it can't be written, or the microphone was set to another format.
    mutating func take(_ chunk: SoundChunk) throws {
        let header = chunk.header
        let format = WaveFile.Format(header)
        if let present = self.format, present != format, output != nil {
            throw Failure(
                status: ExitStatus.refused,
                description:
                    "The format of \(header.device) was changed (to \(format.sampleFormat), \(format.rate) Hz, "
                    + "x\(format.channels)). The sound before the change is written."
            )
        }
        self.format = format
        lost += chunk.lost
        if asJSON || output == nil { try tell(chunk) }
        if output == "-" {
            try chunk.payload.withUnsafeBytes {
                try Output.write(UnsafeRawBufferPointer(rebasing: $0.prefix(bytes(header))))
            }
        } else if let output {
            let file = try self.file ?? WaveFile(output, format)
            self.file = file
            let missing = Int(clamping: min(chunk.lost, UInt64(Self.longestSilence * format.rate)))
            if missing > 0 {
                try file.appendSilence(frames: left(missing))
                frames += left(missing)
            }
            try chunk.payload.withUnsafeBytes {
                try file.append(UnsafeRawBufferPointer(rebasing: $0.prefix(bytes(header))))
            }
        }
        frames += left(header.frames)
    }

    // The number of these frames that still belong to the requested length.
    private func left(_ count: Int) -> Int {
        guard let seconds, let format else { return count }
        return max(0, min(count, wanted(seconds, format) - frames))
    }

    private func bytes(_ header: SoundHeader) -> Int { left(header.frames) * header.bytesPerFrame }

    private mutating func tell(_ chunk: SoundChunk) throws {
        let header = chunk.header
        if asJSON {
            var members = chunk.json.object ?? [:]
            members["lost"] = JSONValue(chunk.lost)
            return try Output.json(.object(members))
        }
        if start == nil { try Output.line(MicrophoneInput.columns("SEQUENCE", "TIME", "FORMAT", "FRAMES", "LOST")) }
        let first = start ?? header.monotonic
        start = first
        try Output.line(
            MicrophoneInput.columns(
                String(header.sequence), MicrophoneInput.seconds(header.monotonic - first),
                "\(header.sampleFormat) \(header.rate) Hz x\(header.channels)", String(header.frames),
                String(chunk.lost)))
    }

    mutating func finish() throws {
        try file?.finish()
        file = nil
        if output != nil, lost > 0 { Output.note("\(lost) frames of sound were lost.") }
        lost = 0
    }
}

/// What commands that read a microphone share.
enum MicrophoneInput {
    /// A user without a decision asks by trying, and waits.
    static func noteWhoIsAsked(_ client: Client, timeout: Duration) async throws {
        guard client.greeting.authorization["audio"] == "notDetermined",
            try await client.authorization(timeout: timeout)["audio"] == "notDetermined"
        else { return }
        Output.note(
            "You have no permission for microphones yet. The request was sent to the administrators; one of them "
                + "allows it with "
                + "'camerabus allow \(client.greeting.uid) audio'. Use 'camerabus ask audio --reason TEXT' to add a "
                + "reason."
        )
    }

    /// Notes why a microphone that has delivered sound stalls. Throws any other error.
    static func wait(
        _ waiting: inout FrameStall, _ error: any Error, _ device: String, hasGiven: Bool, _ timeout: Duration
    ) throws {
        guard let note = waiting.note(of: error, hasGiven: hasGiven) else { throw error }
        if !note.isEmpty { Output.note(Table.printable(note)) }
        if waiting.hasLasted(timeout) {
            throw Failure(status: ExitStatus.timedOut, description: "\(device) did not come back in time.")
        }
    }

    static func seconds(_ nanoseconds: Int64) -> String {
        let milliseconds = nanoseconds / 1_000_000
        return "\(milliseconds / 1000).\(String(1000 + abs(milliseconds % 1000)).dropFirst())"
    }

    // Widths are fixed: the lines are printed as they come.
    static func columns(_ sequence: String, _ time: String, _ format: String, _ frames: String, _ lost: String)
        -> String
    {
        func right(_ text: String, _ width: Int) -> String {
            String(repeating: " ", count: max(0, width - text.count)) + text
        }
        return "\(right(sequence, 8)) \(right(time, 9))  "
            + format + String(repeating: " ", count: max(0, 20 - format.count))
            + "\(right(frames, 7)) \(right(lost, 7))"
    }
}
