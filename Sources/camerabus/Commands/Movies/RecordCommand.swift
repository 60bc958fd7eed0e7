import ArgumentParser
import BusClient
import BusProtocol
import Glibc
import JSON

struct RecordCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "record", abstract: "Records a movie of a camera, with sound if wanted, until Ctrl-C.",
        discussion: """
            Ctrl-C finishes the file, which is then on the disk; its name is printed, on a terminal below a line that tells how far the movie is: time, \
            size, frames, those that are missing, and how busy the encoder is. A movie ends by itself at a limit, or when its camera stays away. What is on the disk plays after \
            a crash or a power cut, too, but for the last --fragment seconds. Frames keep the times at which they were taken, unless --fps is given.

            Pictures that the camera gives as JPEG or H.264 are stored as they come, others encoded with H.264; --codec says otherwise. The file's ending \
            decides between MP4, MOV and Matroska (.mkv); other media's (.avi, .wav) are refused. Nothing is overwritten without --force; with it, what is there \
            is called FILE.PID.old until the new file has ended as wanted, and has its name again when there is none. Without -o the movie goes into the bus's capture library under a name of its own; so it \
            does with -o where the bus may not write there, and is copied from there at the end.

            Beside a movie with pictures lies its side-car, FILE.frames.jsonl: a line of JSON for each frame, with its time, its number, and how many are missing in front of it; before them one that says what \
            the movie is of. It goes with its movie: --force replaces both, 'camerabus library delete' removes both.

            With --to a media server gets the movie in the place of a file, by RTSP, SRT or RTMP, if the bus's configuration allows that server ('destinations' below [library]). \
            A server that goes away is looked for until the movie ends.

            Of several cameras, or of those of a rig, each has a movie of its own, begun together: -o take.mp4 makes take-left.mp4 and take-right.mp4 then, \
            and -o '%s.mp4' left.mp4 and right.mp4. A microphone alone is recorded as sound.

            Exit status 0: it ended as wanted, by Ctrl-C or a limit. 1: by something else, also by another program ('camerabus movies stop') or with the bus, printed as \
            'reason: message'; what was recorded until then is kept.

            With --json: a line for the answer of movie.start, then for each state {"movie", "state"} and for each event {"movie", "event", …}, the last of which is didFinishRecording.

            EXAMPLES:
              camerabus record cam0 --mic mic0 -o take.mp4
              camerabus record cam0 --duration 10 -o ten.mov
              camerabus record left right --mic mic0 -o '%s.mkv'
              camerabus record cam0 --codec h264 --bit-rate 4M --fps 25 -o small.mp4
              camerabus record cam0 --mic mic0 --to rtsp://media.example/live/belt
              id=$(camerabus record cam0 --detach)   # goes on; 'camerabus movies stop $id' ends it
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: "A camera's id, several ones, or a rig's name.", completion: rigCompletion)
    var devices: [String] = []

    @Option(
        name: .customLong("mic"), help: ArgumentHelp("A microphone for the sound.", valueName: "microphone"),
        completion: microphoneCompletion)
    var microphone: String?

    @Option(
        name: .shortAndLong, help: ArgumentHelp("A file, or a folder for names of their own.", valueName: "file"),
        completion: .file())
    var output: String?

    @Option(help: ArgumentHelp("A media server that gets the movie: rtsp://, srt:// or rtmp://.", valueName: "url"))
    var to: String?

    @Flag(help: "Replace a file that is there already, once the new one is whole.")
    var force = false

    @OptionGroup(title: "WHAT IS RECORDED") var making: MovieOptions
    @OptionGroup(title: "WHEN IT ENDS") var limits: MovieLimitOptions

    func validate() throws {
        guard !devices.isEmpty else {
            let alone = microphone.map { "; 'camerabus record \($0)' records its sound alone" } ?? ", or a rig"
            throw ValidationError("Name a camera\(alone). 'camerabus devices' lists what there is.")
        }
        if Set(devices).count < devices.count { throw ValidationError("A camera is named twice.") }
        if to != nil {
            guard output == nil else { throw ValidationError("-o and --to are two places for one movie.") }
            guard devices.count == 1 else { throw ValidationError("--to takes the movie of one camera.") }
            let isOfFile =
                making.type != nil || making.fps != nil || making.fragment != nil || limits.maxSize != nil
                || limits.minFree != nil || limits.resilient
            guard !isOfFile else {
                throw ValidationError(
                    "--type, --fps, --fragment, --max-size, --min-free and --resilient are of files, not of --to.")
            }
        }
        if let output {
            if output.isEmpty { throw ValidationError("-o takes the name of a file or a folder.") }
            try checkEnding(output)
            if limits.detach, force { throw ValidationError("--force needs somebody who waits; --detach doesn't.") }
        } else if force {
            throw ValidationError("--force is about the file of -o.")
        }
    }

    private func checkEnding(_ output: String) throws {
        guard !output.hasSuffix("/"), !MovieFileNames.isFolder(output),
            let ending = MediaFileExtensions.ending(of: output)
        else {
            return
        }
        if MediaFileExtensions.foreign(output, beside: MediaFileExtensions.movies) != nil {
            throw ValidationError("Movies are .mp4, .mov or .mkv, not .\(ending).")
        }
        if let type = making.type, MediaFileExtensions.movies.contains(ending), type != ending {
            throw ValidationError("\(output) is no name for --type \(type).")
        }
    }

    func run(_ client: Client) async throws {
        for device in devices + [microphone].compactMap(\.self) {
            try await DeviceArgumentCheck.check(device, client, timeout: timeout)
        }
        var recording = try await MovieRecording(self, client)
        try await recording.start()
        if limits.detach {
            for movie in recording.movies { try options.json ? Output.json(movie.json) : Output.line(movie.id) }
            return
        }
        try await recording.followToItsEnd()
    }
}

/// How a movie is made.
struct MovieOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How the picture is stored: passThrough, as it comes; h264; or raw, in MOV and Matroska.",
            valueName: "codec"),
        completion: .list(["passThrough", "h264", "raw"]))
    var codec: String?

    @Option(help: ArgumentHelp("Bits a second of H.264: 2500k, 4M (default: by size and rate).", valueName: "bits"))
    var bitRate: ByteSize?

    @Option(
        help: ArgumentHelp("mp4, mov or mkv (default: by the file's ending, else mp4).", valueName: "kind"),
        completion: .list(["mp4", "mov", "mkv"]))
    var type: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Frames a second, equally far apart (default: each at its true time).", valueName: "rate"))
    var fps: Double?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("What a power cut may cost, in seconds (default: 10).", valueName: "seconds"))
    var fragment: Seconds?

    @Option(
        help: ArgumentHelp(
            "Have the camera steady its pictures meanwhile: off, standard, cinematic or auto.", valueName: "mode"),
        completion: .list(["off", "standard", "cinematic", "auto"]))
    var stabilization: String?

    @Flag(help: "Let the camera focus as fast as it does otherwise, and not smoothly.")
    var fastFocus = false

    @Flag(help: "Record black, or silence, where you may not have the camera or the microphone.")
    var blank = false

    func validate() throws {
        if let codec, !["passThrough", "h264", "raw"].contains(codec) {
            throw ValidationError("--codec takes passThrough, h264 or raw.")
        }
        if let type, !["mp4", "mov", "mkv"].contains(type) { throw ValidationError("--type takes mp4, mov or mkv.") }
        if let stabilization, !["off", "standard", "cinematic", "auto"].contains(stabilization) {
            throw ValidationError("--stabilization takes off, standard, cinematic or auto.")
        }
        if bitRate != nil, codec ?? "h264" != "h264" {
            throw ValidationError("--bit-rate is of H.264: what is stored as it comes has its own.")
        }
        if let fps, !(fps > 0 && fps <= 1000) { throw ValidationError("--fps takes a number above 0.") }
        if let fragment, fragment.value < 0.1 { throw ValidationError("--fragment takes 0.1 seconds or more.") }
    }

    /// The kind of file that a name without an ending gets.
    var fileType: String { type ?? "mp4" }
}

/// Where a movie ends by itself.
struct MovieLimitOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("End after so many seconds (default: never).", valueName: "seconds"))
    var duration: Seconds?

    @Option(
        help: ArgumentHelp("End before the file is larger than so many bytes: 700M, 2G.", valueName: "bytes"))
    var maxSize: ByteSize?

    @Option(
        help: ArgumentHelp(
            "End before less than so many bytes of the disk are free; 0: never (default: the bus's).",
            valueName: "bytes"))
    var minFree: FreeBytes?

    @Flag(help: "Go on in a further file when the process that writes it dies.")
    var resilient = false

    @Flag(help: "Print the movie's id and go; 'camerabus movies stop ID' ends it.")
    var detach = false

    func validate() throws {
        if let duration, duration.value <= 0 { throw ValidationError("--duration takes a number above 0.") }
    }
}
