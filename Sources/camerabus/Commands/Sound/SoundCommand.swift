import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct SoundCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "sound", abstract: "Receives sound: into a WAV file, as bare samples, or a line for each piece.",
        discussion: """
            RENDITION is 'native', the sound as the microphone is set, or s16 or f32 (whole numbers of 16 bits; numbers from -1 to 1) with :RATExCHANNELS where \
            these are to be others than the microphone's: resampled and mixed, once for all who ask for it.

            With -o FILE the sound goes into a WAV file, whose header is right also when Ctrl-C ends it. With '-o -' the bare samples go \
            to standard output, interleaved, in the format that the rendition names or, of 'native', 'camerabus format DEVICE' shows. Sound that was lost, by the microphone or on the way \
            here, is counted, and is silence in a WAV file, so that what follows keeps its time. Without -o a line tells of each piece: its number, the seconds \
            since the first one, format, frames (samples of each channel), and how many frames are missing before it. With --json the line is \
            the header with "lost".

            When no sound comes for as long as --timeout says it ends with status 4; Ctrl-C ends it with status 130. A microphone that is unplugged, or \
            taken by another program, after it has given sound is waited for just so long; why is told on standard error.

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
        help: "The sound that is wanted.", completion: .list(SoundRendition.Encoding.allCases.map(\.rawValue)))
    var rendition = "native"

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("End after so much sound, in seconds (default: never).", valueName: "seconds"))
    var seconds: Seconds?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("A WAV file, or '-': bare samples to standard output.", valueName: "file"),
        completion: .file())
    var output: String?

    func validate() throws {
        if let seconds, seconds.value <= 0 { throw ValidationError("--seconds takes a number above 0.") }
        if options.json, output == "-" { throw ValidationError("--json and '-o -' both want standard output.") }
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

/// What is made of sound as it comes.
struct SoundRecording {
    private let output: String?
    private let asJSON: Bool
    private let seconds: Double?
    private var file: WaveFile?
    private var format: WaveFile.Format?
    private var start: Int64?
    private var frames = 0
    private var lost: UInt64 = 0

    /// Longer holes are not filled: nobody wants hours of silence.
    private static let longestSilence = 60

    init(output: String?, asJSON: Bool, seconds: Double?) {
        (self.output, self.asJSON, self.seconds) = (output, asJSON, seconds)
    }

    var hasBegun: Bool { format != nil }

    /// There is as much as was asked for.
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
                    "\(header.device) was set to another format (\(format.sampleFormat), \(format.rate) Hz, x\(format.channels)); what came before is written."
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

    // Of so many frames, those that still belong to what was asked for.
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

/// What commands that listen to a microphone share.
enum MicrophoneInput {
    /// Whoever may not hear microphones yet asks by trying, and waits.
    static func noteWhoIsAsked(_ client: Client, timeout: Duration) async throws {
        guard client.greeting.authorization["audio"] == "notDetermined",
            try await client.authorization(timeout: timeout)["audio"] == "notDetermined"
        else { return }
        Output.note(
            "You may not hear microphones yet, and an administrator is being asked: 'camerabus allow \(client.greeting.uid) audio' "
                + "lets the sound come. 'camerabus ask audio --reason TEXT' says what for.")
    }

    /// Says what keeps a microphone that has given something, and goes on; else the error is thrown.
    static func wait(
        _ waiting: inout FrameStall, _ error: any Error, _ device: String, hasGiven: Bool, _ timeout: Duration
    ) throws {
        guard let note = waiting.note(of: error, hasGiven: hasGiven) else { throw error }
        if !note.isEmpty { Output.note(Table.printable(note)) }
        if waiting.hasLasted(timeout) {
            throw Failure(status: ExitStatus.timedOut, description: "\(device) has not come back in time.")
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
