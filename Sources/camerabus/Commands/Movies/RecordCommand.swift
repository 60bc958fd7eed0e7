import ArgumentParser
import BusClient
import BusProtocol
import Glibc
import JSON

struct RecordCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "record", abstract: "Records a movie of a camera, with sound on request, until Ctrl-C.",
        discussion: """
            Ctrl-C finishes the file; the movie is then on the disk, and its name is printed. On a terminal a line \
            shows the progress: time, size, frames, missing frames, and the load of the encoder. A movie also ends at \
            a limit, or when its camera does not come back. After a crash or a power cut the file on the disk can be \
            played, without the last --fragment seconds. Frames keep the times at which they were taken, unless --fps \
            is given.

            JPEG and H.264 pictures of a camera are stored unchanged; others are encoded as H.264. --codec changes \
            this. The extension of the file selects MP4, MOV or Matroska (.mkv); extensions of other media (.avi, \
            .wav) are refused. Existing files are replaced only with --force. Then the existing file is renamed to \
            FILE.PID.old until the new file has ended as requested; if there is no new file, it gets its name back. \
            Without -o the bus chooses a name in its capture library. If the bus may not write to the path of -o, the \
            movie is recorded into the library, and copied to the path at the end.

            The bus also writes a side-car file, FILE.frames.jsonl, for a movie with pictures. Its first line \
            describes the movie. Then each line is JSON for one frame: its time, its number, and the number of missing \
            frames before it. The side-car belongs to its movie: --force replaces both, 'camerabus library delete' \
            removes both.

            With --to a media server gets the movie instead of a file, by RTSP, SRT or RTMP, if the configuration of \
            the bus allows this server ('destinations' in [library]). If the connection to the server is lost, the bus \
            tries to reconnect until the movie ends.

            Several cameras, or the cameras of a rig, get one movie each; all begin together. Then -o take.mp4 makes \
            take-left.mp4 and take-right.mp4, and -o '%s.mp4' makes left.mp4 and right.mp4. If only a microphone is \
            named, its sound is recorded.

            Exit status 0: the movie ended by Ctrl-C or at a limit. 1: it ended by another cause, also by another \
            program ('camerabus movies stop') or with the bus; this is printed as 'reason: message', and the movie \
            until then is kept.

            With --json: one line for the result of the method movie.start, then {"movie", "state"} for each state and \
            {"movie", "event", …} for each event; the last event is didFinishRecording.

            EXAMPLES:
              camerabus record cam0 --mic mic0 -o take.mp4
              camerabus record cam0 --duration 10 -o ten.mov
              camerabus record left right --mic mic0 -o '%s.mkv'
              camerabus record cam0 --codec h264 --bit-rate 4M --fps 25 -o small.mp4
              camerabus record cam0 --mic mic0 --to rtsp://media.example/live/belt
              id=$(camerabus record cam0 --detach)   # continues; 'camerabus movies stop $id' ends it
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: "The ids of one or more cameras, or the name of a rig.", completion: rigCompletion)
    var devices: [String] = []

    @Option(
        name: .customLong("mic"), help: ArgumentHelp("The microphone for the sound.", valueName: "microphone"),
        completion: microphoneCompletion)
    var microphone: String?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("A file, or a folder in which names are chosen automatically.", valueName: "file"),
        completion: .file())
    var output: String?

    @Option(help: ArgumentHelp("A media server that gets the movie: rtsp://, srt:// or rtmp://.", valueName: "url"))
    var to: String?

    @Flag(help: "Replace an existing file when the new one is finished.")
    var force = false

    @OptionGroup(title: "WHAT IS RECORDED") var making: RecordingOptions
    @OptionGroup(title: "WHEN IT ENDS") var limits: MovieLimitOptions

    func validate() throws {
        guard !devices.isEmpty else {
            let alone = microphone.map { ". 'camerabus record \($0)' records only its sound" } ?? ", or a rig"
            throw ValidationError("Name a camera\(alone). 'camerabus devices' lists the cameras.")
        }
        if Set(devices).count < devices.count { throw ValidationError("A camera is named twice.") }
        if to != nil {
            guard output == nil else {
                throw ValidationError("-o and --to can't be used together: a movie goes to one place.")
            }
            guard devices.count == 1 else { throw ValidationError("--to needs exactly one camera.") }
            let isOfFile =
                making.type != nil || making.fps != nil || making.fragment != nil || limits.maxSize != nil
                || limits.minFree != nil || limits.resilient
            guard !isOfFile else {
                throw ValidationError(
                    "--type, --fps, --fragment, --max-size, --min-free and --resilient are only for files, not for "
                        + "--to."
                )
            }
        }
        if let output {
            if output.isEmpty { throw ValidationError("-o takes the name of a file or a folder.") }
            try checkEnding(output)
            if limits.detach, force {
                throw ValidationError(
                    "--force can't be used with --detach: this program must wait for the end of the movie to replace "
                        + "the file."
                )
            }
        } else if force {
            throw ValidationError("--force needs -o.")
        }
    }

    private func checkEnding(_ output: String) throws {
        guard !output.hasSuffix("/"), !MovieFileNames.isFolder(output),
            let ending = MediaFileExtensions.ending(of: output)
        else {
            return
        }
        if MediaFileExtensions.foreign(output, beside: MediaFileExtensions.movies) != nil {
            throw ValidationError("Movies have the extension .mp4, .mov or .mkv, not .\(ending).")
        }
        if let type = making.type, MediaFileExtensions.movies.contains(ending), type != ending {
            throw ValidationError("The extension of \(output) does not match --type \(type).")
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

/// Options for the format of a movie.
struct RecordingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How pictures are stored: passThrough (unchanged), h264, raw (pixels), or ffv1 (pixels, compressed without "
                + "loss). The last two only in MOV and Matroska.",
            valueName: "codec"),
        completion: .list(Self.codecs))
    var codec: String?

    @Option(help: ArgumentHelp("Bits per second of H.264: 2500k, 4M (default: from size and rate).", valueName: "bits"))
    var bitRate: ByteSize?

    @Option(
        help: ArgumentHelp("mp4, mov or mkv (default: from the file's extension, else mp4).", valueName: "kind"),
        completion: .list(["mp4", "mov", "mkv"]))
    var type: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "A constant number of frames per second: 25, 29.97, 30000/1001 (default: each frame at its true time).",
            valueName: "rate"), transform: FrameRate.init(reading:))
    var fps: FrameRate?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The seconds that a power cut may lose (default: 10).", valueName: "seconds"))
    var fragment: Seconds?

    @Option(
        help: ArgumentHelp(
            "Let the camera stabilize its pictures meanwhile: off, standard, cinematic or auto.", valueName: "mode"),
        completion: .list(["off", "standard", "cinematic", "auto"]))
    var stabilization: String?

    @Option(
        help: ArgumentHelp(
            "The orientation of the camera: portrait, portraitUpsideDown, landscapeRight or landscapeLeft.",
            valueName: "orientation"),
        completion: .list(Self.orientations))
    var orientation: String?

    @Flag(help: "Mirror the picture: exchange left and right.")
    var mirrored = false

    private static let codecs = ["passThrough", "h264", "raw", "ffv1"]
    private static let orientations = ["portrait", "portraitUpsideDown", "landscapeRight", "landscapeLeft"]

    @Flag(help: "Let the camera focus at its usual speed, not slowly and smoothly.")
    var fastFocus = false

    @Flag(help: "If you have no permission for the camera or the microphone, record black or silence.")
    var blank = false

    func validate() throws {
        if let codec, !Self.codecs.contains(codec) {
            throw ValidationError("--codec takes passThrough, h264, raw or ffv1.")
        }
        if let type, !["mp4", "mov", "mkv"].contains(type) { throw ValidationError("--type takes mp4, mov or mkv.") }
        if let stabilization, !["off", "standard", "cinematic", "auto"].contains(stabilization) {
            throw ValidationError("--stabilization takes off, standard, cinematic or auto.")
        }
        if let orientation, !Self.orientations.contains(orientation) {
            throw ValidationError("--orientation takes \(Self.orientations.joined(separator: ", ")).")
        }
        if bitRate != nil, codec ?? "h264" != "h264" {
            throw ValidationError(
                "--bit-rate is only for H.264. Pictures that are stored unchanged keep their bit rate.")
        }
        if let fps, !(0.01...1000).contains(fps.framesPerSecond) {
            throw ValidationError("--fps takes a rate from 0.01 to 1000.")
        }
        if let fragment, fragment.value < 0.1 { throw ValidationError("--fragment takes 0.1 seconds or more.") }
    }

    /// The kind of file that a name without an ending gets.
    var fileType: String { type ?? "mp4" }
}

/// Options for the end of a movie.
struct MovieLimitOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("End after this many seconds (default: never).", valueName: "seconds"))
    var duration: Seconds?

    @Option(
        help: ArgumentHelp("End before the file gets larger than this many bytes: 700M, 2G.", valueName: "bytes"))
    var maxSize: ByteSize?

    @Option(
        help: ArgumentHelp(
            "End before less than this many bytes of the disk are free (the bus sets the least, and the default).",
            valueName: "bytes"))
    var minFree: FreeBytes?

    @Flag(help: "Continue in another file if the process that writes the movie dies.")
    var resilient = false

    @Flag(help: "Print the movie's id and exit at once; 'camerabus movies stop ID' ends the movie.")
    var detach = false

    func validate() throws {
        if let duration, duration.value <= 0 { throw ValidationError("--duration takes a number greater than 0.") }
    }
}
