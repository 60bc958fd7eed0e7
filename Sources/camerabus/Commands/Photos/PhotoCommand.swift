import ArgumentParser
import BusClient
import JSON

struct PhotoCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "photo", abstract: "Takes photos, of several cameras at the same moment.",
        discussion: """
            Each photo is a file with all that is known of it (time, exposure, camera), whose name is printed; standard error tells its size and time, and 'not settled' where the \
            camera's exposure had not come to rest in time. Without -o the names are made of the camera and the time, in the folder that you are in. Nothing is overwritten without --force, and no file is \
            ever seen half-written.

            -o is a file, a folder for names of their own, or '-' for one photo's bytes on standard output. %s in its name is the camera's id, %d or %04d the photo's number from 1; a name without them gets \
            '-CAMERA' and '-NUMBER' before its ending where there are several. An ending .dng asks for that format; a name without .jpg, .jpeg or .dng at its end gets its photo's. Numbers are of the photos that there are: one that fails leaves no gap. With --library photos go into the bus's \
            capture library, and to you as well only with -o.

            Several cameras, or those of a rig, are taken at the same moment, as one: all or none. --bracket and --burst are one job of the camera, --count takes photo after photo, with --every as a \
            time-lapse: one that fails later than the first, or can't be written, is told and left out, and the exit status is 1 then; how many came later than asked is told at the end.

            --format dng wants a raw format of the camera, Bayer or grey: 'camerabus formats CAMERA' lists what it has, 'camerabus format CAMERA --pixel RG12' chooses one.

            A bracket has 2 to 16 exposures, a burst up to 100 photos; either lasts 60 seconds at most. --bracket is told in EV from what the camera finds right, also where that is set by \
            hand; each step waits until the pictures show it, which takes some frames, and a second or two where the camera doesn't tell. What the camera can't expose is taken with the nearest, and \
            told; so are photos of a burst that come later than asked. While a movie is made of the camera there is no bracket, nor --high-resolution. All photos of a job come in one reply, of 256 MiB at most: long bursts, and those of large or raw pictures, go --library.

            --ago takes a photo of a moment that is over, by 10 seconds at most, of what the photo output of a running session holds of its cameras, whosever that is: \
            camerabus session run cam0 --preset inputPriority --output '{"type": "photo", "preRoll": 2000}' runs one, with the camera as it is set.

            With --live a photo comes with a movie (MOV) of the 1.5 seconds before and after it, with sound with --mic: -o a.jpg makes a.jpg and a.mov, with one identifier in both; in the library both are one \
            entry. It runs a session of its own with the camera as it is set, and waits until it holds the seconds before; with --session it is of one that makes live photos already, with its microphone, and lies as that has it. \
            --orientation and --mirrored are of both files. The movie has at most 1920 pixels a side, and is shorter, which is told, where the camera is lifted or put down meanwhile, or its pictures end. It is one JPEG of one camera, without bracket, burst, --ago and --high-resolution, and not while the session has a movie output; of one session at most four are made at a time.

            With --json: a line for each answer of photo.capture, whose photos, and livePhotoMovie, have their 'file'; with --stages also a line {"uniqueID", "event", …} for each stage.

            Ctrl-C ends it with status 130; photos that were printed are there, of a bracket or a burst that was under way none.

            EXAMPLES:
              camerabus photo cam0
              camerabus photo cam0 -o a.jpg --flash auto --thumbnail
              camerabus photo left right -o shot.jpg          # shot-left.jpg and shot-right.jpg
              camerabus photo cam0 --bracket=-2,0,2 -o 'b-%d.jpg'
              camerabus photo cam0 --every 10 --count 360 -o 'lapse-%04d.jpg'
              camerabus photo cam0 --format dng --library
              camerabus photo cam0 --live --mic mic0 -o a.jpg  # and a.mov
              camerabus photo cam0 -o - | exiftool -
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: "Cameras, or a rig's name.", completion: rigCompletion)
    var devices: [String] = []

    @Option(
        help: ArgumentHelp("A rig, where a camera has its name too.", valueName: "rig"),
        completion: .shellCommand("camerabus rigs list --names 2>/dev/null"))
    var rig: String?

    @Option(
        help: ArgumentHelp(
            "A running session with a photo output, its id or its beginning; of several cameras name one.",
            valueName: "session"),
        completion: sessionCompletion)
    var session: String?

    @Option(
        name: .shortAndLong, help: ArgumentHelp("A file, a folder, or '-'.", valueName: "file"), completion: .file())
    var output: String?

    @Flag(help: "Replace files that are there already.")
    var force = false

    @Flag(help: "Have the photos in the bus's capture library.")
    var library = false

    @Flag(help: "Tell each stage: willBeginCapture, willCapturePhoto, …")
    var stages = false

    @OptionGroup(title: "HOW A PHOTO IS TAKEN") var making: PhotoOptions
    @OptionGroup(title: "HOW MANY") var series: PhotoSeries

    func validate() throws {
        guard !devices.isEmpty || rig != nil || session != nil else {
            throw ValidationError("Name a camera, or several; or a --rig or a --session.")
        }
        if rig != nil, session != nil || !devices.isEmpty { throw ValidationError("A --rig stands for its cameras.") }
        if session != nil, devices.count > 1 { throw ValidationError("Beside --session stands one of its cameras.") }
        if Set(devices).count < devices.count { throw ValidationError("A camera is named twice.") }
        if making.live, rig != nil || devices.count > 1 { throw ValidationError("--live is of one camera.") }
        if session != nil, making.microphone != nil {
            throw ValidationError("A --session has its own microphone, or none.")
        }
        if making.live, session != nil, let option = making.placing {
            throw ValidationError("\(option) can't be had with --live of a --session, whose connection says it.")
        }
        if making.ago != nil, series.every == nil, series.count ?? 1 > 1 {
            throw ValidationError("With --ago, --count wants --every: else all photos are of one moment.")
        }
        if let output {
            if output.isEmpty { throw ValidationError("-o takes the name of a file or a folder, or '-'.") }
            if options.json, output == "-" { throw ValidationError("--json and '-o -' both want standard output.") }
            if making.live, output == "-" {
                throw ValidationError("A live photo is two files: -o names the picture, or a folder.")
            }
            if making.live, ["mov", "dng"].contains(MediaFileExtensions.ending(of: output)) {
                throw ValidationError("-o names a live photo's picture, .jpg; its movie lies beside it as .mov.")
            }
            let places = try PhotoFileNames(output)
            if let flaw = places.flaw(extent(ofDevices: devices.count)) { throw ValidationError(flaw) }
            if let type = places.fileType, let format = making.format, type != format {
                throw ValidationError("\(output) is no name for --format \(format).")
            }
        } else if force, library {
            throw ValidationError("--force is about files of -o.")
        }
    }

    /// How many photos there are of how many cameras.
    func extent(ofDevices devices: Int) -> PhotoFileNames.Extent {
        PhotoFileNames.Extent(hasSeveralDevices: devices > 1, count: series.total.map { $0 * making.shots })
    }

    func run(_ client: Client) async throws {
        for device in devices + [making.microphone].compactMap(\.self) {
            try await DeviceArgumentCheck.check(device, client, timeout: timeout)
        }
        try await PhotoSequence(self, client).run()
    }
}

/// How a photo is taken.
struct PhotoOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "jpeg, or dng for the camera's raw picture (default: by the file's ending, else the camera's first).",
            valueName: "format"),
        completion: .list(["jpeg", "dng"]))
    var format: String?

    @Option(help: ArgumentHelp("Of a JPEG, 1 to 100 (default: as the camera makes it, else 95).", valueName: "number"))
    var quality: Int?

    @Option(
        help: ArgumentHelp("off, on or auto (default: off).", valueName: "mode"),
        completion: .list(["off", "on", "auto"]))
    var flash: String?

    @Flag(help: "With the flash's own means against red eyes, where it has some.")
    var redEyeReduction = false

    @Flag(help: "Have the camera steady the picture.")
    var stabilization = false

    @Flag(help: "Take it at the camera's largest size, whatever size it streams in.")
    var highResolution = false

    @Flag(help: "Put a small picture into the file, too.")
    var thumbnail = false

    @Option(help: ArgumentHelp("Its longer side, 16 to 640 (default: 160).", valueName: "pixels"))
    var thumbnailSize: Int?

    @Option(
        help: ArgumentHelp(
            "How the camera is held: portrait, portraitUpsideDown, landscapeRight or landscapeLeft.",
            valueName: "orientation"),
        completion: .list(["portrait", "portraitUpsideDown", "landscapeRight", "landscapeLeft"]))
    var orientation: String?

    @Flag(help: "As in a mirror.")
    var mirrored = false

    @Flag(help: "Turn the pixels themselves, without loss, not by a tag in the file.")
    var turned = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "A photo for each of these 2 to 16 exposures, in EV from what is right: -2,0,2.", valueName: "numbers"),
        transform: ExposureBiases.read)
    var bracket: ExposureBiases?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "A photo for each of these 2 to 16 exposures, in seconds: 1/125,1/30.", valueName: "seconds"),
        transform: ExposureDurations.read)
    var bracketDurations: ExposureDurations?

    @Option(help: ArgumentHelp("So many photos one after the other, 1 to 100, within 60 s.", valueName: "count"))
    var burst: Int?

    @Option(
        help: ArgumentHelp("Milliseconds between those of a burst (default: each frame).", valueName: "milliseconds"))
    var interval: Int?

    @Option(
        help: ArgumentHelp(
            "Of so many milliseconds ago, 1 to 10000, where a session's photo output holds them (preRoll).",
            valueName: "milliseconds"))
    var ago: Int?

    @Flag(help: "With a movie of 1.5 seconds before and after it, beside it as .mov.")
    var live = false

    @Option(
        name: .customLong("mic"),
        help: ArgumentHelp("A microphone for the sound of that movie.", valueName: "microphone"),
        completion: microphoneCompletion)
    var microphone: String?

    func validate() throws {
        if let format, !["jpeg", "dng"].contains(format) { throw ValidationError("--format takes jpeg or dng.") }
        if let quality, !(1...100).contains(quality) {
            throw ValidationError("--quality takes a number from 1 to 100.")
        }
        if let flash, !["off", "on", "auto"].contains(flash) {
            throw ValidationError("--flash takes off, on or auto.")
        }
        if let thumbnailSize, !(16...640).contains(thumbnailSize) {
            throw ValidationError("--thumbnail-size takes a number from 16 to 640.")
        }
        let orientations = ["portrait", "portraitUpsideDown", "landscapeRight", "landscapeLeft"]
        if let orientation, !orientations.contains(orientation) {
            throw ValidationError("--orientation takes \(orientations.joined(separator: ", ")).")
        }
        if let burst, !(1...100).contains(burst) { throw ValidationError("--burst takes a number from 1 to 100.") }
        if let interval, !(1...10_000).contains(interval) {
            throw ValidationError("--interval takes milliseconds, 1 to 10000.")
        }
        if let ago {
            guard (1...10_000).contains(ago) else { throw ValidationError("--ago takes milliseconds, 1 to 10000.") }
            let others = exposing + [("--flash", flash ?? "off" != "off"), ("--stabilization", stabilization)]
            if let (option, _) = others.first(where: \.1) {
                throw ValidationError(
                    "\(option) can't be had with --ago, which is one JPEG of each camera with nothing set for it.")
            }
        }
        if live {
            if let (option, _) = (exposing + [("--ago", ago != nil)]).first(where: \.1) {
                throw ValidationError(
                    "\(option) can't be had with --live, which is one JPEG of now, at the size that the camera streams."
                )
            }
        } else if microphone != nil {
            throw ValidationError("--mic is for the movie of a --live photo.")
        }
        if redEyeReduction, flash ?? "off" == "off" {
            throw ValidationError("--red-eye-reduction is of --flash on or auto.")
        }
        if interval != nil, burst ?? 1 == 1 { throw ValidationError("--interval is of a --burst.") }
        guard (burst ?? 1) - 1 <= 60_000 / (interval ?? 1) else {
            throw ValidationError("A burst lasts at most 60 s; --count with --every takes longer.")
        }
        guard [bracket != nil, bracketDurations != nil, burst != nil].filter(\.self).count < 2 else {
            throw ValidationError("--bracket, --bracket-durations and --burst each say how many photos there are.")
        }
    }

    /// What is not one JPEG of the stream.
    private var exposing: [(String, Bool)] {
        [
            ("--bracket", bracket != nil), ("--bracket-durations", bracketDurations != nil),
            ("--burst", burst ?? 1 > 1), ("--high-resolution", highResolution), ("--format dng", format == "dng"),
        ]
    }

    /// The option that says how the picture lies; nil: none does.
    var placing: String? { orientation != nil ? "--orientation" : mirrored ? "--mirrored" : nil }

    /// How many photos of a camera one job makes.
    var shots: Int { bracket?.values.count ?? bracketDurations?.values.count ?? burst ?? 1 }

    /// How long it takes to take them.
    var duration: Duration { .milliseconds(max(0, (burst ?? 1) - 1) * (interval ?? 100)) }

    /// Something of the camera is set for it, so that its lock matters.
    var changesDevice: Bool {
        flash ?? "off" != "off" || highResolution || bracket != nil || bracketDurations != nil
    }

    /// - Parameter fileType: what the file's name says.
    func settings(fileType: String?) -> JSONValue {
        var settings: [String: JSONValue] = [:]
        settings["format"] = (format ?? fileType).map(JSONValue.string)
        settings["quality"] = quality.map { JSONValue($0) }
        settings["flash"] = flash.map(JSONValue.string)
        if redEyeReduction { settings["redEyeReduction"] = true }
        if stabilization { settings["stabilization"] = true }
        if highResolution { settings["highResolution"] = true }
        if let thumbnailSize {
            settings["thumbnail"] = ["maxSize": JSONValue(thumbnailSize)]
        } else if thumbnail {
            settings["thumbnail"] = true
        }
        // Of a live photo the session has them, for the movie as well.
        if !live {
            settings["orientation"] = orientation.map(JSONValue.string)
            if mirrored { settings["mirrored"] = true }
        }
        if turned { settings["turned"] = true }
        if let bracket { settings["bracket"] = ["exposureBias": .array(bracket.values.map(JSONValue.number))] }
        if let bracketDurations { settings["bracket"] = ["exposureDuration": .array(bracketDurations.values)] }
        settings["burst"] = burst.map { JSONValue($0) }
        settings["interval"] = interval.map { JSONValue($0) }
        settings["ago"] = ago.map { JSONValue($0) }
        if live { settings["livePhoto"] = true }
        return .object(settings)
    }
}

/// How many photos are taken, one job after the other.
struct PhotoSeries: ParsableArguments {
    @Option(
        name: [.customShort("n"), .long], parsing: .unconditional,
        help: ArgumentHelp("End after so many (default: 1; with --every never).", valueName: "count"))
    var count: Int?

    @Option(parsing: .unconditional, help: ArgumentHelp("Seconds from one to the next.", valueName: "seconds"))
    var every: Seconds?

    func validate() throws {
        if let count, !(1...10_000_000).contains(count) { throw ValidationError("--count takes a number above 0.") }
        if let every, every.value <= 0 { throw ValidationError("--every takes a number above 0.") }
    }

    /// nil: for ever.
    var total: Int? { count ?? (every == nil ? 1 : nil) }
}

/// `-2,0,2`: EV from what is right.
struct ExposureBiases: ExpressibleByArgument, Hashable {
    var values: [Double]

    /// - Throws: what is wrong with it.
    static func read(_ text: String) throws -> ExposureBiases {
        guard let biases = Self(argument: text) else {
            throw ValidationError("it takes 2 to 16 numbers of EV from -20 to 20, as in -2,0,2")
        }
        return biases
    }

    /// - Returns: nil for less than 2 or more than 16, or what are no numbers.
    init?(argument: String) {
        let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { Double($0) }.filter { abs($0) <= 20 }
        guard numbers.count == parts.count, (2...16).contains(numbers.count) else { return nil }
        values = numbers
    }
}

/// `1/125,1/30,0.5`: seconds.
struct ExposureDurations: ExpressibleByArgument, Hashable {
    /// As the bus takes them: text for a fraction, else a number.
    var values: [JSONValue]

    /// - Throws: what is wrong with it.
    static func read(_ text: String) throws -> ExposureDurations {
        guard let durations = Self(argument: text) else {
            throw ValidationError("it takes 2 to 16 times in seconds up to 3600, as in 1/125,1/30 or 0.01,0.1")
        }
        return durations
    }

    /// - Returns: nil for less than 2 or more than 16, or what are no times.
    init?(argument: String) {
        let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
        let times = parts.compactMap(Self.time)
        guard times.count == parts.count, (2...16).contains(times.count) else { return nil }
        values = times
    }

    private static func time(_ text: Substring) -> JSONValue? {
        if let seconds = Double(text) { return seconds > 0 && seconds <= 3600 ? .number(seconds) : nil }
        let terms = text.split(separator: "/", omittingEmptySubsequences: false)
        guard terms.count == 2, let numerator = Int32(terms[0]), let denominator = Int32(terms[1]), numerator > 0,
            denominator > 0
        else { return nil }
        return .string(String(text))
    }
}
