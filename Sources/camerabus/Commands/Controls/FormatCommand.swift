import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct FormatCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "format", abstract: "Shows or changes the format and the frame rate of a device.",
        discussion: """
            If you give none of size, --pixel and --fps (for a microphone: none of --sample, --rate and --channels), \
            the active format is shown. The frame rate and the controls keep their values if possible. A new size \
            without --pixel selects the best pixel format for that size. If one value is not possible, nothing is \
            changed, and the nearest possible values are shown; with --nearest these are set and shown.

            With the token of a lock ('camerabus lock') in --lock or $CAMERABUS_LOCK, the command uses that lock. \
            Without one the device is locked only for this change.

            With --json: the result of the method device.configure; without a change the device's activeFormat, \
            frameDuration and generation (a number that rises with each change of the device).

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
            "Width and height in pixels, such as 1280x720, or an id from 'camerabus formats'.", valueName: "size"),
        transform: FormatArgument.init(reading:))
    var size: FormatArgument?

    @Option(
        help: ArgumentHelp(
            """
            The four-character code of the pixel format, such as YUYV, NV12 or MJPG; 'camerabus formats' lists them \
            (default: the best for the size). Without a size the current size is kept.
            """,
            valueName: "code"), completion: BusCompletion.pixelFormats)
    var pixel: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            """
            Frames per second: 30, 29.97, or exactly 30000/1001 (default: the current rate if the format has it, else \
            a rate that it has).
            """,
            valueName: "rate"), transform: FrameRate.init(reading:))
    var fps: FrameRate?

    @Option(
        help: ArgumentHelp(
            "Of a microphone: the sample format (s16, s24, s24in32, s32, f32).", valueName: "format"))
    var sample: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Of a microphone: samples per second and channel.", valueName: "hertz"))
    var rate: Int?

    @Option(parsing: .unconditional, help: ArgumentHelp("Of a microphone: the number of channels.", valueName: "count"))
    var channels: Int?

    @Flag(help: "Accept the nearest possible values if the exact ones are not possible.")
    var nearest = false

    @Flag(help: "Change nothing; only show the result.")
    var dryRun = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "If another client has locked the device, wait this many seconds for it.", valueName: "seconds"))
    var wait: Seconds = 0

    func validate() throws {
        if isOfSound, size != nil || pixel != nil || fps != nil {
            throw ValidationError(
                "--sample, --rate and --channels are for microphones. A size, --pixel and --fps are for cameras.")
        }
        guard pixel != nil else { return }
        if case .id? = size {
            throw ValidationError("The id of a format includes its pixel format. Leave --pixel out.")
        }
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
        // The name of a rig stands for several.
        for (id, applied) in (answer["applied"]?.object ?? [:]).sorted(by: { $0.key < $1.key }) {
            try Output.line((dryRun ? "would be " : "") + Self.line(id, applied))
        }
        Adjustments.note(answer)
        PersistenceNote.note(answer)
    }

    private var isOfSound: Bool { sample != nil || rate != nil || channels != nil }

    /// Called under the lock, so that a pixel format alone keeps the size that is set now.
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
                    description:
                        "The size of \(device) is not known yet. Give one: camerabus format \(device) WIDTHxHEIGHT "
                        + "--pixel …"
                )
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
                "formatUnsupported: '\(id)' is a pixel format. Use: camerabus format \(device) --pixel \(code)"))
    }

    /// The pixel format as the device spells it; case does not matter.
    private func code(_ client: Client) async throws -> String? {
        guard let pixel else { return nil }
        let codes = try await client.formats(device, timeout: timeout).compactMap { $0["pixelFormat"]?.string }
        if let code = Self.code(pixel, of: codes) { return code }
        let known = codes.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }.joined(separator: ", ")
        throw Failure(
            status: ExitStatus.refused,
            description: Table.printable(
                "formatUnsupported: \(device) has no pixel format '\(pixel)'. It has \(known)."))
    }

    /// Some codes differ only by case; then only an exact match counts.
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
