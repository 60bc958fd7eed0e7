import ArgumentParser
import BusClient
import BusProtocol
import JSON
import LinuxIO

struct FramesCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "frames",
        abstract: "Receives frames: prints a line for each, or writes them to files or standard output.",
        discussion: """
            RENDITION is 'native' (the device's own format) or FORMAT[:WIDTHxHEIGHT][@RATE][,OPTION]…, with FORMAT \
            one of jpeg, bgr, rgb, gray, yuyv, nv12, i420, gray16, rgb48. The default is native, from another machine \
            jpeg. Set width or height to 0 to keep the aspect ratio; pictures can only become smaller. RATE is in \
            frames per second. For H.264 ('native@5') a rate keeps only the key frames, at most as often as the \
            camera makes them. The options are q=QUALITY from 1 to 100 (default 80), crop=WIDTHxHEIGHT+X+Y, a part of \
            the upright picture that is taken before all else, rotate=ANGLE (90, 180 or 270 degrees clockwise), \
            mirror, which exchanges left and right after the rotation, and fit, which makes width and height upper \
            bounds. Width and height are those of the rotated picture. Options may be separated by ';' too, in \
            quotation marks. A device makes 8 different renditions at the same time unless the bus is configured \
            otherwise. Another one is refused with limitExceeded until one of these ends.

            Only the newest frame is delivered: a slow reader loses frames and gets the current picture. H.264 frames \
            depend on each other. They are delivered in order from a key frame on, and after a loss from the next key \
            frame on. Lost frames are counted. Without -o one line per frame is printed: its number, the seconds since \
            the first one, the format, the size in pixels, the bytes, and the number of frames lost before it. With \
            --json the line is the header of the frame with "bytes", "lost" and, with -o, "file".

            With --shared the pixels are read from memory that all readers on the bus's machine share, if the bus \
            provides it: the same frames for much less work. A frame that is overwritten before it is written out \
            counts as lost.

            With --set DEVICE is a rig ('camerabus rigs'). One line is printed per set of frames that were taken at \
            the same time: its number, the seconds since the first set, the spread of its frames in milliseconds, the \
            number of sets lost before it, and for each device the milliseconds between its frame and that of the \
            first device, or why it has none. A frame that arrives after its set gets a line of its own, with 'late:'. \
            With -o each frame is written to a file; in the file name %d is the number of the set and %s the device's \
            id. -n counts sets.

            The command ends with status 4 if no frame arrives within --timeout (longer if RATE is lower than that). \
            Ctrl-C ends it with status 130. No file is left half-written. If a camera was unplugged, taken by another \
            program or restarted after it had delivered frames, the command waits for it for the same time, and prints \
            the cause on standard error.

            EXAMPLES:
              camerabus frames cam0
              camerabus frames cam0 jpeg:640x360@10 -n 5 -o 'f-%02d.jpg'
              camerabus frames cam0 jpeg@1 -o latest.jpg
              camerabus frames cam0 jpeg,rotate=90 -n 1 -o f.jpg
              camerabus frames cam0 jpeg:640x360,crop=800x450+100+50 -n 1 -o part.jpg
              camerabus frames cam0 jpeg -o - | ffplay -f mjpeg -
              camerabus frames cam0 yuyv:1280x720 --shared -o - >cam0.yuv
              camerabus frames cam0 -n 300 -o - > movie.h264
              camerabus frames stereo jpeg:640x0 --set -n 10 -o '%s-%03d.jpg'
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: deviceHelp, completion: rigCompletion)
    var device: String

    @Argument(
        help: "The format and size of the frames (default: native; from another machine jpeg).",
        completion: .list(Rendition.Encoding.allCases.map(\.rawValue)), transform: Rendition.spelled)
    var rendition: String?

    @Option(
        name: .shortAndLong, parsing: .unconditional,
        help: ArgumentHelp("End after this many frames (default: never).", valueName: "count"))
    var number: Int?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            """
            Write the bytes of each frame: with '-' to standard output, one after the other; else to a file. %d or \
            %05d in the name is the number of the frame, from 1. Without %d each frame replaces the file. Other \
            programs never see a half-written file.
            """, valueName: "file"),
        completion: .file(), transform: FileNamePattern.init(reading:))
    var output: FileNamePattern?

    @Flag(help: "Read the pixels from shared memory.")
    var shared = false

    @Flag(help: "Receive the matched sets of a rig.")
    var set = false

    func validate() throws {
        if set, shared { throw ValidationError("--set and --shared can't be used together.") }
        if set, let output, output.isStandardOutput || !output.namesDevice {
            throw ValidationError("With --set the file name of -o needs %s, which stands for the device's id.")
        }
        if !set, output?.namesDevice == true { throw ValidationError("%s in the name of -o is only for --set.") }
        do {
            if let rendition { _ = try Rendition(parsing: rendition) }
        } catch {
            let rendition = rendition ?? ""
            let why = error.data["why"]?.string ?? error.message
            let hint =
                DeviceID.isValid(rendition) ? " The command reads one device. For two devices, run it twice." : ""
            throw ValidationError("'\(rendition)' is not a rendition: \(why).\(hint)")
        }
        if let number, number < 1 { throw ValidationError("--number takes a number greater than 0.") }
        if options.json, output?.isStandardOutput == true {
            throw ValidationError("--json and '-o -' can't be used together: both write to standard output.")
        }
    }

    func run(_ client: Client) async throws {
        if shared, client.directory == nil {
            let why =
                "--shared works only on the machine of the bus. Leave it out: these frames come over the network."
            throw Failure(status: ExitStatus.usage, description: "Error: \(why)")
        }
        try await noteWhoIsAsked(client)
        if set {
            return try await FrameSetReader(
                rig: device, rendition: rendition ?? (client.directory == nil ? "jpeg" : "native"), number: number,
                output: output, asJSON: options.json,
                timeout: timeout
            ).run(client)
        }
        try await DeviceArgumentCheck.check(device, client, timeout: timeout)
        let frames = try await subscribe(client)
        var first: Int64?
        var lost: UInt64 = 0
        // Overwritten since the last frame that was delivered.
        var missed: UInt64 = 0
        var count = 0
        var waiting = FrameStall(device)
        do {
            while count < number ?? .max {
                var frame: Frame
                do {
                    frame = try await frames.next()
                } catch {
                    guard let note = waiting.note(of: error, hasGiven: first != nil) else { throw error }
                    if !note.isEmpty { Output.note(Table.printable(note)) }
                    if waiting.hasLasted(Self.patience(timeout, rendition)) {
                        throw Failure(status: ExitStatus.timedOut, description: "\(device) did not come back in time.")
                    }
                    continue
                }
                waiting.end()
                frame.lost += missed
                let start = first ?? frame.header.monotonic
                if first == nil, output == nil, !options.json { try Output.line(Self.titles) }
                first = start
                guard try deliver(frame, number: count + 1, start: start) else {
                    missed = frame.lost + 1
                    continue
                }
                missed = 0
                lost += frame.lost
                count += 1
            }
        } catch {
            if Signals.interruption != nil, isSeries { Output.note(Self.interruption(count, of: number)) }
            throw error
        }
        if output != nil, lost > 0 { Output.note("\(count) frames; \(lost) more were too late or lost.") }
    }

    private func subscribe(_ client: Client) async throws -> Frames {
        do {
            return try await client.frames(
                device, rendition, shared: shared, silence: Self.patience(timeout, rendition), timeout: timeout)
        } catch {
            guard error.reason == .deviceNotFound,
                let rigs = try? await client.rigs(timeout: timeout),
                rigs.contains(where: { $0["name"]?.string == device })
            else { throw error }
            throw ClientError.refused(
                BusError(
                    .deviceNotFound,
                    "\(device) is a rig. Add --set for the frames of its devices, or name one of its devices.",
                    ["device": .string(device)]))
        }
    }

    // A user without a decision asks by trying, and waits.
    private func noteWhoIsAsked(_ client: Client) async throws {
        guard client.greeting.authorization["video"] == "notDetermined",
            try await client.authorization(timeout: timeout)["video"] == "notDetermined"
        else { return }
        Output.note(
            "You have no permission for cameras yet. The request was sent to the administrators; one of them allows it "
                + "with "
                + "'camerabus allow \(client.greeting.uid) video'. Use 'camerabus ask video --reason TEXT' to add a "
                + "reason."
        )
    }

    /// Whether an interruption leaves the result incomplete.
    private var isSeries: Bool { output?.isStandardOutput == false || number != nil }

    static func interruption(_ count: Int, of number: Int?) -> String {
        "Interrupted after \(number.map { "\(count) of \($0)" } ?? "\(count)") "
            + "\((number ?? count) == 1 ? "frame" : "frames")."
    }

    // False: its pixels were overwritten.
    private func deliver(_ frame: Frame, number: Int, start: Int64) throws -> Bool {
        var file: String?
        if let output {
            if output.isStandardOutput { return try withPixels(frame) { try Output.write($0) } }
            let name = output.name(number)
            do {
                guard try withPixels(frame, { try AtomicFile.write($0, to: name) }) else { return false }
            } catch {
                throw Failure(status: ExitStatus.refused, description: "\(error)")
            }
            file = name
        }
        if options.json {
            var members = frame.json.object ?? [:]
            members["bytes"] = JSONValue(frame.payload.count)
            members["lost"] = JSONValue(frame.lost)
            members["file"] = file.map(JSONValue.string)
            try Output.json(.object(members))
        } else if output == nil {
            try Output.line(Self.line(frame.header, bytes: frame.payload.count, lost: frame.lost, start: start))
        }
        return true
    }

    // Shared pixels are copied first, as written bytes can't be taken back.
    private func withPixels(_ frame: Frame, _ body: (UnsafeRawBufferPointer) throws -> Void) rethrows -> Bool {
        guard frame.payload.isShared else {
            try frame.payload.withUnsafeBytes { try body($0) }
            return true
        }
        let copy = frame.payload.copied()
        guard frame.payload.isIntact else { return false }
        try copy.withUnsafeBytes(body)
        return true
    }

    static let titles = Self.columns("SEQUENCE", "TIME", "FORMAT", "SIZE", "BYTES", "LOST")

    static func line(_ header: FrameHeader, bytes: Int, lost: UInt64, start: Int64) -> String {
        let (elapsed, overflow) = header.monotonic.subtractingReportingOverflow(start)
        let milliseconds = overflow ? 0 : elapsed / 1_000_000
        let thousandths = String(1000 + abs(milliseconds % 1000)).dropFirst()
        return columns(
            String(header.sequence), "\(milliseconds / 1000).\(thousandths)", header.format,
            "\(header.width)x\(header.height)", String(bytes), String(lost))
    }

    /// The longest time without a frame: at least three periods of the rendition.
    static func patience(_ timeout: Duration, _ rendition: String?) -> Duration {
        guard let rate = rendition.flatMap({ try? Rendition(parsing: $0) })?.rateMillionths, rate > 0 else {
            return timeout
        }
        return max(timeout, .nanoseconds(3_000_000_000_000_000 / Int64(rate)))
    }

    // Widths are fixed: the lines are printed as they come.
    private static func columns(
        _ sequence: String, _ time: String, _ format: String, _ size: String, _ bytes: String, _ lost: String
    ) -> String {
        func right(_ text: String, _ width: Int) -> String {
            String(repeating: " ", count: max(0, width - text.count)) + text
        }
        func left(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(0, width - text.count))
        }
        return "\(right(sequence, 8)) \(right(time, 9))  \(left(format, 6)) \(left(size, 9)) \(right(bytes, 9)) "
            + right(lost, 5)
    }
}

extension FileNamePattern {
    /// `-` is no file.
    var isStandardOutput: Bool { self == FileNamePattern(argument: "-") }
}
