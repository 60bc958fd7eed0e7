import ArgumentParser
import BusClient
import JSON

struct FormatCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "format", abstract: "Shows or changes the format and the frame rate of a device.",
        discussion: """
            Without a size, --pixel and --fps, or of a microphone --sample, --rate and --channels, it shows what is active; what is not given stays, if it can. The change is made whole or not at all. What can't be had just so is refused \
            with what is nearest; with --nearest that is taken, and told.

            The lock is the one of --lock or $CAMERABUS_LOCK; without one the device is locked for just this change.

            With --json: the answer of device.configure; without a change the device's activeFormat, frameDuration and generation.

            EXAMPLES:
              camerabus format cam0 1280x720
              camerabus format cam0 1920x1080 --pixel MJPG --fps 30
              camerabus format cam0 --pixel MJPG
              camerabus format cam0 --fps 30000/1001
              camerabus format cam0 1900x1000 --nearest --dry-run
              camerabus format mic0 --rate 44100 --channels 1
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    @Argument(
        help: ArgumentHelp(
            "Width and height in pixels, 1280x720, or the id of a row of 'camerabus formats'.", valueName: "size"),
        transform: FormatArgument.init(reading:))
    var size: FormatArgument?

    @Option(
        help: ArgumentHelp(
            "The pixel format's four-character code, as 'camerabus formats' shows it: YUYV, NV12, MJPG (default: the best for the size). Without a size that stays as it is.",
            valueName: "code"), completion: BusCompletion.pixelFormats)
    var pixel: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Frames a second: 30, 29.97, or exactly 30000/1001 (default: as it is, else what the format has).",
            valueName: "rate"))
    var fps: FrameRateArgument?

    @Option(
        help: ArgumentHelp(
            "Of a microphone: how a sample is written (s16, s24, s24in32, s32, f32).", valueName: "format"))
    var sample: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Of a microphone: samples a second of each channel.", valueName: "hertz"))
    var rate: Int?

    @Option(parsing: .unconditional, help: ArgumentHelp("Of a microphone: how many channels.", valueName: "count"))
    var channels: Int?

    @Flag(help: "Take what is nearest when it can't be had just so.")
    var nearest = false

    @Flag(help: "Change nothing, only say what would come of it.")
    var dryRun = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Wait so many seconds for the device when another client has it locked.", valueName: "seconds"))
    var wait: Seconds = 0

    func validate() throws {
        if isOfSound, size != nil || pixel != nil || fps != nil {
            throw ValidationError(
                "--sample, --rate and --channels are of microphones; a size, --pixel and --fps of cameras.")
        }
        guard pixel != nil else { return }
        if case .id? = size { throw ValidationError("The id of a format says its pixel format: leave --pixel out.") }
    }

    func run(_ client: Client) async throws {
        guard size != nil || pixel != nil || fps != nil || isOfSound else { return try await show(client) }
        try await checkID(client)
        let code = try await self.code(client)
        let mode = nearest ? Client.ConfigurationMode.nearest : .exact
        let answer: JSONValue
        if let token = lock.lock ?? client.defaultLock {
            let change = try await self.change(client, code)
            answer = try await client.configure([change], lock: token, mode: mode, dryRun: dryRun, timeout: timeout)
        } else {
            answer = try await client.withLock([device], wait: wait.duration, timeout: timeout) { lock in
                let change = try await self.change(client, code)
                return try await client.configure(
                    [change], lock: lock.token, mode: mode, dryRun: dryRun, timeout: timeout)
            }
        }
        if options.json { return try Output.json(answer) }
        try Output.line((dryRun ? "would be " : "") + Self.line(device, answer["applied"]?[device]))
        Adjustments.note(answer)
        PersistenceNote.note(answer)
    }

    private var isOfSound: Bool { sample != nil || rate != nil || channels != nil }

    /// Under the lock: a pixel format alone keeps the size that is set then.
    private func change(_ client: Client, _ code: String?) async throws -> JSONValue {
        if isOfSound {
            let format: JSONValue = .members([
                "sampleFormat": sample.map(JSONValue.string), "rate": rate.map { JSONValue($0) },
                "channels": channels.map { JSONValue($0) },
            ])
            return ["device": .string(device), "activeFormat": format]
        }
        var wish = size
        if wish == nil, code != nil {
            let active = try await client.device(device, timeout: timeout)["activeFormat"]
            guard let width = active?["width"]?.integer, let height = active?["height"]?.integer else {
                throw Failure(
                    status: ExitStatus.refused,
                    description: "The size of \(device) is not known yet; give one: \(device) WIDTHxHEIGHT --pixel …")
            }
            wish = .size(width: Int(width), height: Int(height))
        }
        return .members([
            "device": .string(device), "activeFormat": wish?.json(pixelFormat: code), "frameRate": fps?.json,
        ])
    }

    /// `format cam0 MJPG` takes a pixel format for the id of a format.
    private func checkID(_ client: Client) async throws {
        guard case .id(let id)? = size else { return }
        let formats = try await client.formats(device, timeout: timeout)
        guard !formats.contains(where: { $0["id"]?.string == id }),
            let code = Self.code(id, of: formats.compactMap { $0["pixelFormat"]?.string })
        else { return }
        throw Failure(
            status: ExitStatus.refused,
            description: Table.printable(
                "formatUnsupported: '\(id)' is a pixel format: camerabus format \(device) --pixel \(code)"))
    }

    /// The pixel format as the device spells it, whatever its case.
    private func code(_ client: Client) async throws -> String? {
        guard let pixel else { return nil }
        let codes = try await client.formats(device, timeout: timeout).compactMap { $0["pixelFormat"]?.string }
        if let code = Self.code(pixel, of: codes) { return code }
        let known = codes.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }.joined(separator: ", ")
        throw Failure(
            status: ExitStatus.refused,
            description: Table.printable(
                "formatUnsupported: \(device) has no pixel format '\(pixel)'; it has \(known)."))
    }

    /// Some codes differ by case alone: then only the very same is meant.
    static func code(_ wish: String, of codes: [String]) -> String? {
        if codes.contains(wish) { return wish }
        let alike = Set(codes.filter { $0.lowercased() == wish.lowercased() })
        return alike.count == 1 ? alike.first : nil
    }

    private func show(_ client: Client) async throws {
        let value = try await client.device(device, timeout: timeout)
        guard options.json else { return try Output.line(Self.line(device, value)) }
        try Output.json(
            .members([
                "activeFormat": value["activeFormat"], "frameDuration": value["frameDuration"],
                "generation": value["generation"],
            ]))
    }

    /// `cam0: YUYV 1280x720 at 30 frames/s`
    static func line(_ device: String, _ value: JSONValue?) -> String {
        let rate = ValueText.rate(ofDuration: value?["frameDuration"])
        return "\(device): \(ValueText.format(value?["activeFormat"]))" + (rate == "-" ? "" : " at \(rate) frames/s")
    }
}
