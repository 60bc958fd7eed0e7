import ArgumentParser
import BusClient
import JSON

struct PhotoCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "photo", abstract: "Takes photos, also of several cameras at the same moment.",
        discussion: """
            Each photo is a file with its metadata (time, exposure, camera). Its name is printed. Standard error shows \
            its size and time, and 'not settled' if the exposure of the camera was not stable in time. Without -o the \
            names consist of the camera and the time, in the current folder. Existing files are replaced only with \
            --force. Other programs never see a half-written file.

            -o is a file, a folder in which names are chosen automatically, or '-' for the bytes of one photo on \
            standard output. In a file name %s is the camera's id, and %d or %04d the number of the photo, from 1. If \
            there are several photos, a name without these gets '-CAMERA' and '-NUMBER' before its extension. The \
            extensions .dng, .png and .tiff select these formats. A name without one of these or .jpg gets the \
            extension of its photo. A photo that fails gets no number. --library stores the photos in the capture \
            library of the bus; you then get them as files only with -o.

            Photos of several cameras, or of the cameras of a rig, are taken at the same moment: all or none. \
            --bracket and --burst are one job of the camera. --count takes photos one after the other, with --every as \
            a time-lapse. If a later photo fails or can't be written, this is reported, the series continues, and the \
            exit status is 1. The number of late photos is reported at the end.

            --format dng needs a raw format of the camera, Bayer or grey: 'camerabus formats CAMERA' lists its \
            formats, 'camerabus format CAMERA --pixel RG12' selects one. --format png and tiff lose nothing: they have \
            16 bits a sample if the camera has more than 8. --format jpeg+dng makes two files of each frame: -o a.jpg \
            makes a.jpg and a.dng. In the library each has an entry.

            A bracket has 2 to 16 exposures, a burst up to 100 photos; each lasts 60 seconds at most. --bracket is in \
            EV, relative to the exposure that the camera chooses, also if it is set by hand. Each step waits until the \
            pictures show it: some frames, or one to two seconds if the camera does not report it. An unsupported \
            exposure is replaced by the nearest one and reported as 'adjusted'. Late photos of a burst are reported \
            too. While a movie of the camera is recorded, brackets, --high-resolution and --size are not possible. All \
            photos of a job come in one reply of at most 256 MiB; use --library for long bursts, and for bursts of \
            large or raw pictures.

            --ago takes a photo of a moment in the past, at most 10 seconds ago. It needs a running session, of any \
            client, whose photo output keeps frames of the camera. This command runs one and does not change the \
            camera: camerabus session run cam0 --preset inputPriority --output '{"type": "photo", "preRoll": 2000}'

            --live takes a photo with a movie (MOV) of the 1.5 seconds before and after it; --mic adds sound. -o a.jpg \
            makes a.jpg and a.mov with the same identifier; in the library both are one entry. The command runs a \
            session of its own, does not change the camera's settings, and waits until the seconds before the photo \
            are held. With --session it uses a session that already makes live photos, with the microphone and \
            orientation of that session. --orientation and --mirrored apply to both files. The movie has at most 1920 \
            pixels per side. It is shorter, and this is reported, if the camera is moved by hand meanwhile, or \
            its frames end. A live photo is one JPEG of one camera. It excludes bracket, burst, --ago, \
            --high-resolution and --size, and a session with a movie output. A session makes at most four at the same \
            time.

            With --json: one line per answer of photo.capture, whose photos and livePhotoMovie have a 'file'; with \
            --stages also one line {"uniqueID", "event", …} per stage.

            Ctrl-C ends the command with status 130. Photos whose names were printed are kept; an unfinished bracket \
            or burst leaves none.

            EXAMPLES:
              camerabus photo cam0
              camerabus photo cam0 -o a.jpg --flash auto --thumbnail
              camerabus photo left right -o shot.jpg          # shot-left.jpg and shot-right.jpg
              camerabus photo cam0 --bracket=-2,0,2 -o 'b-%d.jpg'
              camerabus photo cam0 --every 10 --count 360 -o 'lapse-%04d.jpg'
              camerabus photo cam0 --format dng --library
              camerabus photo cam0 --format jpeg+dng -o a.jpg  # and a.dng
              camerabus photo cam0 --live --mic mic0 -o a.jpg  # and a.mov
              camerabus photo cam0 -o - | exiftool -
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: "The ids of cameras, or the name of a rig.", completion: rigCompletion)
    var devices: [String] = []

    @Option(
        help: ArgumentHelp("The name of a rig; needed if a camera has the same name.", valueName: "rig"),
        completion: .shellCommand("camerabus rigs list --names 2>/dev/null"))
    var rig: String?

    @Option(
        help: ArgumentHelp(
            "The id, or its beginning, of a running session with a photo output. If it has several cameras, name one.",
            valueName: "session"),
        completion: sessionCompletion)
    var session: String?

    @Option(
        name: .shortAndLong, help: ArgumentHelp("A file, a folder, or '-'.", valueName: "file"), completion: .file())
    var output: String?

    @Flag(help: "Replace existing files.")
    var force = false

    @Flag(help: "Store the photos in the capture library of the bus.")
    var library = false

    @Flag(help: "Report each stage: willBeginCapture, willCapturePhoto, …")
    var stages = false

    @OptionGroup(title: "HOW A PHOTO IS TAKEN") var making: PhotoOptions
    @OptionGroup(title: "HOW MANY") var series: PhotoSeries

    func validate() throws {
        guard !devices.isEmpty || rig != nil || session != nil else {
            throw ValidationError("Name one or more cameras, or use --rig or --session.")
        }
        if rig != nil, session != nil || !devices.isEmpty {
            throw ValidationError("--rig can't be used with cameras or --session: it names the cameras itself.")
        }
        if session != nil, devices.count > 1 { throw ValidationError("With --session name only one of its cameras.") }
        if Set(devices).count < devices.count { throw ValidationError("A camera is named twice.") }
        if making.live, rig != nil || devices.count > 1 { throw ValidationError("--live takes one camera.") }
        if session != nil, making.microphone != nil {
            throw ValidationError("--mic can't be used with --session: the session chooses its microphone.")
        }
        if making.live, session != nil, let option = making.placing {
            throw ValidationError(
                "\(option) can't be used with --live and --session: the connection of the session sets it.")
        }
        if making.ago != nil, series.every == nil, series.count ?? 1 > 1 {
            throw ValidationError(
                "With --ago, --count needs --every. Without it all photos would show the same moment.")
        }
        if let output {
            if output.isEmpty { throw ValidationError("-o takes the name of a file or a folder, or '-'.") }
            if options.json, output == "-" {
                throw ValidationError("--json and '-o -' can't be used together: both write to standard output.")
            }
            if making.live, output == "-" {
                throw ValidationError("A live photo is two files. -o takes the name of the picture, or a folder.")
            }
            if making.live, ["mov", "dng", "png", "tif", "tiff"].contains(MediaFileExtensions.ending(of: output)) {
                throw ValidationError(
                    "-o takes the name of the picture (.jpg) of a live photo. The movie gets the same name with .mov.")
            }
            if making.withRaw, output == "-" {
                throw ValidationError(
                    "--format \(making.format ?? "") makes two files of a photo. -o takes the name of the first, or a "
                        + "folder.")
            }
            let places = try PhotoFileNames(output)
            if let flaw = places.flaw(extent(ofDevices: devices.count)) { throw ValidationError(flaw) }
            if let type = places.fileType, let format = making.fileType, type != format {
                let whole = making.format ?? format
                throw ValidationError("The extension of \(output) does not match --format \(whole).")
            }
        } else if force, library {
            throw ValidationError("--force needs -o: it replaces files, not photos in the library.")
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
            "jpeg; dng for the raw picture; png or tiff without loss, of 16 bits if the camera has more than 8; "
                + "jpeg+dng, png+dng or tiff+dng for both of the same frame (default: from the file's extension, else "
                + "the camera's first format).",
            valueName: "format"),
        completion: .list(Self.formats))
    var format: String?

    @Option(
        help: ArgumentHelp(
            "The quality of a JPEG, 1 to 100 (default: the JPEG of the camera unchanged, else 95).", valueName: "number"
        ))
    var quality: Int?

    @Option(
        help: ArgumentHelp("The flash: off, on or auto (default: off).", valueName: "mode"),
        completion: .list(["off", "on", "auto"]))
    var flash: String?

    @Flag(help: "Use the red-eye reduction of the flash, if it has one.")
    var redEyeReduction = false

    @Flag(help: "Let the camera stabilize the picture.")
    var stabilization = false

    @Flag(help: "Take the photo in the largest size of the camera, not in the size that it streams.")
    var highResolution = false

    @Option(
        help: ArgumentHelp(
            "Take the photo in the largest size of the camera that is not larger than this one, as in 1920x1080.",
            valueName: "size"),
        transform: PhotoSize.read)
    var size: PhotoSize?

    @Flag(help: "Add a thumbnail to the file.")
    var thumbnail = false

    @Option(help: ArgumentHelp("The longer side of the thumbnail, 16 to 640 (default: 160).", valueName: "pixels"))
    var thumbnailSize: Int?

    @Option(
        help: ArgumentHelp(
            "The orientation of the camera: portrait, portraitUpsideDown, landscapeRight or landscapeLeft.",
            valueName: "orientation"),
        completion: .list(["portrait", "portraitUpsideDown", "landscapeRight", "landscapeLeft"]))
    var orientation: String?

    @Flag(help: "Mirror the picture: exchange left and right.")
    var mirrored = false

    @Flag(help: "Rotate the pixels themselves, without loss, instead of a tag in the file.")
    var turned = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "One photo for each of these 2 to 16 exposures, in EV relative to the metered one: -2,0,2.",
            valueName: "numbers"),
        transform: ExposureBiases.read)
    var bracket: ExposureBiases?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "One photo for each of these 2 to 16 exposure times, in seconds: 1/125,1/30.", valueName: "seconds"),
        transform: ExposureDurations.read)
    var bracketDurations: ExposureDurations?

    @Option(help: ArgumentHelp("Take this many photos in a row, 1 to 100, within 60 s.", valueName: "count"))
    var burst: Int?

    @Option(
        help: ArgumentHelp(
            "The milliseconds between photos of a burst (default: every frame).", valueName: "milliseconds"))
    var interval: Int?

    @Option(
        help: ArgumentHelp(
            "Take a photo of this many milliseconds ago, 1 to 10000, if a session's photo output holds them (preRoll).",
            valueName: "milliseconds"))
    var ago: Int?

    @Flag(help: "Also make a movie (.mov) of the 1.5 seconds before and after the photo.")
    var live = false

    @Option(
        name: .customLong("mic"),
        help: ArgumentHelp("The microphone for the sound of that movie.", valueName: "microphone"),
        completion: microphoneCompletion)
    var microphone: String?

    func validate() throws {
        if let format, !Self.formats.contains(format) {
            throw ValidationError(
                "--format takes jpeg, dng, png or tiff; and jpeg+dng, png+dng or tiff+dng for two files of one frame.")
        }
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
                    "\(option) can't be used with --ago, which takes one JPEG per camera with the settings of that "
                        + "moment."
                )
            }
        }
        if live {
            if let (option, _) = (exposing + [("--ago", ago != nil)]).first(where: \.1) {
                throw ValidationError(
                    "\(option) can't be used with --live, which takes one JPEG now, in the size that the camera "
                        + "streams."
                )
            }
        } else if microphone != nil {
            throw ValidationError("--mic needs --live.")
        }
        if redEyeReduction, flash ?? "off" == "off" {
            throw ValidationError("--red-eye-reduction needs --flash on or auto.")
        }
        if highResolution, size != nil {
            throw ValidationError("--size can't be used with --high-resolution, which takes the largest size.")
        }
        if interval != nil, burst ?? 1 == 1 { throw ValidationError("--interval needs --burst.") }
        guard (burst ?? 1) - 1 <= 60_000 / (interval ?? 1) else {
            throw ValidationError("A burst lasts at most 60 s. Use --count with --every for a longer series.")
        }
        guard [bracket != nil, bracketDurations != nil, burst != nil].filter(\.self).count < 2 else {
            throw ValidationError(
                "Only one of --bracket, --bracket-durations and --burst is possible: each sets the number of photos.")
        }
    }

    private static let formats = ["jpeg", "dng", "png", "tiff"] + ["jpeg", "png", "tiff"].map { $0 + raw }
    private static let raw = "+dng"

    /// Each photo comes with a DNG.
    var withRaw: Bool { format?.hasSuffix(Self.raw) ?? false }

    /// What ``format`` says of the photo itself.
    var fileType: String? { withRaw ? format.map { String($0.dropLast(Self.raw.utf8.count)) } : format }

    /// Options whose result is not one JPEG of the stream.
    private var exposing: [(String, Bool)] {
        [
            ("--bracket", bracket != nil), ("--bracket-durations", bracketDurations != nil),
            ("--burst", burst ?? 1 > 1), ("--high-resolution", highResolution), ("--size", size != nil),
            ("--format \(format ?? "")", format ?? "jpeg" != "jpeg"),
        ]
    }

    /// The option that sets the orientation; nil: none does.
    var placing: String? { orientation != nil ? "--orientation" : mirrored ? "--mirrored" : nil }

    /// How many photos of a camera one job makes.
    var shots: Int { bracket?.values.count ?? bracketDurations?.values.count ?? burst ?? 1 }

    /// How long it takes to take them.
    var duration: Duration { .milliseconds(max(0, (burst ?? 1) - 1) * (interval ?? 100)) }

    /// Whether a setting of the camera is changed, so that its lock matters.
    var changesDevice: Bool {
        flash ?? "off" != "off" || highResolution || size != nil || bracket != nil || bracketDurations != nil
    }

    /// - Parameter fileType: what the file's name says.
    func settings(fileType: String?) -> JSONValue {
        var settings: [String: JSONValue] = [:]
        settings["format"] = (self.fileType ?? fileType).map(JSONValue.string)
        if withRaw { settings["raw"] = true }
        settings["quality"] = quality.map { JSONValue($0) }
        settings["flash"] = flash.map(JSONValue.string)
        if redEyeReduction { settings["redEyeReduction"] = true }
        if stabilization { settings["stabilization"] = true }
        if highResolution { settings["highResolution"] = true }
        settings["maxPhotoDimensions"] = size?.json
        if let thumbnailSize {
            settings["thumbnail"] = ["maxSize": JSONValue(thumbnailSize)]
        } else if thumbnail {
            settings["thumbnail"] = true
        }
        // For a live photo the session sets them, also for the movie.
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

/// `1920x1080`: the most that a photo may have.
struct PhotoSize: Hashable {
    /// {width, height}
    var json: JSONValue

    /// - Throws: what is wrong with it.
    static func read(_ text: String) throws -> PhotoSize {
        let format = try FormatArgument(reading: text)
        guard case .size = format else {
            throw ValidationError("a size is width and height in pixels, as in 1280x720")
        }
        return Self(json: format.json(pixelFormat: nil))
    }
}

/// How many photos are taken, one job after the other.
struct PhotoSeries: ParsableArguments {
    @Option(
        name: [.customShort("n"), .long], parsing: .unconditional,
        help: ArgumentHelp("End after this many photos (default: 1; with --every never).", valueName: "count"))
    var count: Int?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("The seconds from one photo to the next.", valueName: "seconds"))
    var every: Seconds?

    func validate() throws {
        if let count, !(1...10_000_000).contains(count) {
            throw ValidationError("--count takes a number greater than 0.")
        }
        if let every, every.value <= 0 { throw ValidationError("--every takes a number greater than 0.") }
    }

    /// nil: for ever.
    var total: Int? { count ?? (every == nil ? 1 : nil) }
}

/// `-2,0,2`: EV relative to the metered exposure.
struct ExposureBiases: ExpressibleByArgument, Hashable {
    var values: [Double]

    /// - Throws: what is wrong with it.
    static func read(_ text: String) throws -> ExposureBiases {
        guard let biases = Self(argument: text) else {
            throw ValidationError("a bracket is 2 to 16 EV values from -20 to 20, such as -2,0,2")
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
            throw ValidationError("a bracket is 2 to 16 times in seconds, up to 3600, such as 1/125,1/30 or 0.01,0.1")
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
        return ValueText.fraction(String(text)) == nil ? nil : .string(String(text))
    }
}
