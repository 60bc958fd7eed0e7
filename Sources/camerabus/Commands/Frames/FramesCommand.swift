import ArgumentParser
import BusClient
import BusProtocol
import JSON
import LinuxIO

struct FramesCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "frames", abstract: "Receives frames: a line for each, files, or the bytes themselves.",
        discussion: """
            RENDITION is 'native', the device's own format and what is given unless another is named (from another machine: jpeg), or FORMAT[:WIDTHxHEIGHT][@RATE][;OPTION]… with FORMAT one of jpeg, bgr, rgb, \
            gray, yuyv, nv12, i420. One of width and height may be 0 to keep the aspect; sizes only go down; RATE is in frames a second; of \
            H.264 ('native@5') a rate leaves the key frames only, as seldom as the camera makes them. \
            Options are q=QUALITY, 1 to 100 (80); rotate=ANGLE, by which the picture is turned clockwise: 90, 180 or 270 degrees; and mirror, \
            which exchanges left and right after that. Width and height are those of the turned picture, and a ';' wants quotation marks in \
            a shell. A device makes 8 different renditions at a time, unless its bus is configured otherwise; a further one is refused \
            with limitExceeded until one of them is given up.

            Only the newest frame is taken: who is slow loses frames and sees the present. Of H.264, whose frames build on one another, they \
            come one after the other, from a key frame on, and after a loss from the next one on. What was lost is counted. Without -o a \
            line tells of each frame: its number, the seconds since the first one, format, size in pixels, bytes, and how many were lost \
            before it. With --json the line is the frame's header with "bytes", "lost" and, with -o, "file".

            With --shared the pixels are read from memory that all readers on the bus's own machine share, where the bus has it: the same frames, for a fraction of the work. A frame that was overwritten before it was written out counts as lost.

            With --set DEVICE is a rig ('camerabus rigs'): a line tells of each set of frames that were taken at the same time: its number, the seconds since the first one, the spread of its frames in milliseconds, how many sets were lost before it, and for each device how \
            many milliseconds its frame is from the lead's, or why there is none. A frame that came after its set has a line of its own, with \
            'late:'. With -o each frame goes into a file, in whose name %d is the number of the set and %s the device's id; -n counts sets.

            When no frame comes for as long as --timeout says (longer for a RATE below that), it ends with status 4; Ctrl-C ends it \
            with status 130. Either way no file is left half-written. A camera that is unplugged, taken by another program or started anew after it \
            has given frames is waited for just so long; why is told on standard error.

            EXAMPLES:
              camerabus frames cam0
              camerabus frames cam0 jpeg:640x360@10 -n 5 -o 'f-%02d.jpg'
              camerabus frames cam0 jpeg@1 -o latest.jpg
              camerabus frames cam0 'jpeg;rotate=90' -n 1 -o f.jpg
              camerabus frames cam0 jpeg -o - | ffplay -f mjpeg -
              camerabus frames cam0 yuyv:1280x720 --shared -o - >cam0.yuv
              camerabus frames cam0 -n 300 -o - > movie.h264
              camerabus frames stereo jpeg:640x0 --set -n 10 -o '%s-%03d.jpg'
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: deviceHelp, completion: rigCompletion)
    var device: String

    @Argument(
        help: "The picture that is wanted (default: native; from another machine jpeg).",
        completion: .list(Rendition.Encoding.allCases.map(\.rawValue)))
    var rendition: String?

    @Option(
        name: .shortAndLong, parsing: .unconditional,
        help: ArgumentHelp("End after so many frames (default: never).", valueName: "count"))
    var number: Int?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            """
            Write each frame's bytes: '-' to standard output, one after the other; else to a file, whose name has the number \
            of the frame, from 1, at %d or %05d. Without it each frame takes the file's place. Files are never seen half-written.
            """, valueName: "file"),
        completion: .file(), transform: FileNamePattern.init(reading:))
    var output: FileNamePattern?

    @Flag(help: "Read the pixels from shared memory.")
    var shared = false

    @Flag(help: "Receive the matched sets of a rig.")
    var set = false

    func validate() throws {
        if set, shared { throw ValidationError("--set and --shared don't go together.") }
        if set, let output, output.isStandardOutput || !output.namesDevice {
            throw ValidationError("With --set -o takes a file name with %s, which becomes the device's id.")
        }
        if !set, output?.namesDevice == true { throw ValidationError("%s in -o's name goes with --set.") }
        do {
            if let rendition { _ = try Rendition(parsing: rendition) }
        } catch {
            let rendition = rendition ?? ""
            let why = error.data["why"]?.string ?? error.message
            let hint = DeviceID.isValid(rendition) ? " One device is read at a time: for two, run it twice." : ""
            throw ValidationError("'\(rendition)' is no rendition: \(why).\(hint)")
        }
        if let number, number < 1 { throw ValidationError("--number takes a number above 0.") }
        if options.json, output?.isStandardOutput == true {
            throw ValidationError("--json and '-o -' both want standard output.")
        }
    }

    func run(_ client: Client) async throws {
        if shared, client.directory == nil {
            let why =
                "--shared is for the bus's own machine: frames from another one come over the network. Leave it out."
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
                        throw Failure(status: ExitStatus.timedOut, description: "\(device) has not come back in time.")
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
        if output != nil, lost > 0 { Output.note("\(count) frames; \(lost) between them came too late or were lost.") }
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
                    "\(device) is a rig: add --set for the frames of its devices, or name one of them.",
                    ["device": .string(device)]))
        }
    }

    // Whoever may not see cameras yet asks by trying, and waits.
    private func noteWhoIsAsked(_ client: Client) async throws {
        guard client.greeting.authorization["video"] == "notDetermined",
            try await client.authorization(timeout: timeout)["video"] == "notDetermined"
        else { return }
        Output.note(
            "You may not see cameras yet, and an administrator is being asked: 'camerabus allow \(client.greeting.uid) video' "
                + "lets the frames come. 'camerabus ask video --reason TEXT' says what for.")
    }

    /// Something is to be made of it that an interruption leaves incomplete.
    private var isSeries: Bool { output?.isStandardOutput == false || number != nil }

    static func interruption(_ count: Int, of number: Int?) -> String {
        "Interrupted after \(number.map { "\(count) of \($0)" } ?? "\(count)") \((number ?? count) == 1 ? "frame" : "frames")."
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

    // Shared ones are copied first: what is written out can't be taken back.
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

    /// How long no frame may come: for slow renditions three of their periods.
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
