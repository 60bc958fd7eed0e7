import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct WhiteBalanceCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "white-balance",
        abstract: "Sets the same white on one or more cameras, from a grey card that all of them see.",
        discussion: """
            Hold a grey or white card into the picture. The command measures its colour around the point of --at (a \
            tenth of the width and height), sets whiteBalanceGains so that the card is grey, and measures again until \
            it is. The cameras must have whiteBalanceGains ('camerabus controls'). whiteBalanceMode is locked then, \
            so the white stays. Each camera gets gains of its own.

            If the card is too dark or too bright in one of the pictures, no camera is changed: change the light or \
            the exposure. If a camera's gains do not reach far enough, the command says so and ends with status 1.

            With --json: {"cameras": [{device, whiteBalanceGains, isGrey}]}.

            EXAMPLES:
              camerabus white-balance cam0
              camerabus white-balance stereo --at 0.5,0.5
              camerabus white-balance cam0 cam1 --at 0.3,0.6
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: "The ids of cameras, or the name of a rig.", completion: rigCompletion)
    var cameras: [String]

    @Option(
        help: ArgumentHelp(
            "Where the card is in the pictures: 0,0 is the top left corner, 1,1 the bottom right (default: 0.5,0.5).",
            valueName: "x,y"),
        transform: PointArgument.init(reading:))
    var at: PointArgument?

    func validate() throws {
        if cameras.isEmpty { throw ValidationError("Name at least one camera, or a rig.") }
    }

    /// A camera on its way.
    private struct Balancing {
        let device: String
        let frames: Frames
        var balance: GreyBalance
        var given: GreyBalance.Gains
        var card: GreyCard
        var isSet = false
        var isGrey = false
        var isOver = false
    }

    /// Pixels of a measured picture's width.
    private static let rendition = "rgb:160x0"
    /// Frames that may still be of the gains before.
    private static let delay: UInt64 = 5

    func run(_ client: Client) async throws {
        var all: [Balancing] = []
        for device in try await devices(client) { all.append(try await begin(device, client)) }
        while let next = all.firstIndex(where: { !$0.isOver }) {
            switch all[next].balance.take(all[next].card, with: all[next].given) {
            case .grey:
                // Gains that are set stay; automatic ones, which come to the same, are locked so.
                if !all[next].isSet { try await set(all[next].given, &all[next], client) }
                (all[next].isGrey, all[next].isOver) = (true, true)
            case .exhausted: all[next].isOver = true
            case .set(let gains):
                try await set(gains, &all[next], client)
                all[next].card = try await measure(all[next].device, all[next].frames, after: Self.delay)
            }
        }
        try report(all)
    }

    private func set(_ gains: GreyBalance.Gains, _ camera: inout Balancing, _ client: Client) async throws {
        let answer = try await client.set(
            camera.device,
            controls: ["whiteBalanceGains": ["red": .number(gains.red), "green": 1, "blue": .number(gains.blue)]],
            lock: lock.lock, timeout: timeout)
        let applied = answer["applied"]?[camera.device]?["controls"]?["whiteBalanceGains"]
        camera.given = Self.gains(applied) ?? gains
        camera.isSet = true
    }

    private func devices(_ client: Client) async throws -> [String] {
        let rigs = try await DeviceArgumentCheck.rigs(client, timeout: timeout)
        if cameras.count == 1, let rig = rigs.first(where: { $0.name == cameras[0] }) { return rig.devices }
        let ids = try await client.devices(timeout: timeout).compactMap { $0["id"]?.string }
        for name in cameras where !ids.contains(name) {
            throw Failure(
                status: ExitStatus.refused, description: Table.printable(DeviceArgumentCheck.refusal(name, ids)))
        }
        return cameras
    }

    // Nothing is set before all cameras see the card.
    private func begin(_ device: String, _ client: Client) async throws -> Balancing {
        let answer = try await client.call("device.controls", ["device": .string(device)], timeout: timeout)
        let control = answer["cameraControls"]?.array?.first { $0["name"] == "whiteBalanceGains" }
        guard let control, let most = Self.gains(control["maximum"]) else {
            throw Failure(
                status: ExitStatus.refused,
                description: "controlUnsupported: \(device) has no whiteBalanceGains; leave it out.")
        }
        let frames = try await client.frames(device, Self.rendition, silence: timeout, timeout: timeout)
        let card = try await measure(device, frames, after: 1)
        guard card.isUsable else {
            let how = card.green < 128 ? "dark" : "bright"
            throw Failure(
                status: ExitStatus.refused,
                description: "The card is too \(how) in the picture of \(device). Change the light or the exposure, or "
                    + "name another point with --at.")
        }
        let now = Self.gains(control["value"]) ?? GreyBalance.Gains(red: 1, blue: 1)
        return Balancing(
            device: device, frames: frames, balance: GreyBalance(now, most: most), given: now, card: card)
    }

    private func measure(_ device: String, _ frames: Frames, after delay: UInt64) async throws -> GreyCard {
        let point = at?.point ?? PreviewLayout.Point(x: 0.5, y: 0.5)
        var first: Frame?
        while true {
            let frame = try await frames.next()
            if first?.header.stream != frame.header.stream { first = frame }
            guard let start = first?.header.sequence, frame.header.sequence >= start + delay else { continue }
            guard let card = GreyCard(around: point, of: frame) else {
                throw Failure(
                    status: ExitStatus.refused, description: "The pictures of \(device) are not RGB.")
            }
            return card
        }
    }

    private static func gains(_ json: JSONValue?) -> GreyBalance.Gains? {
        guard let red = json?["red"]?.double, let blue = json?["blue"]?.double else { return nil }
        return GreyBalance.Gains(red: red, blue: blue)
    }

    private func report(_ all: [Balancing]) throws {
        if options.json {
            try Output.json([
                "cameras": .array(
                    all.map {
                        [
                            "device": .string($0.device), "isGrey": .bool($0.isGrey),
                            "whiteBalanceGains": [
                                "red": .number($0.given.red), "green": 1, "blue": .number($0.given.blue),
                            ],
                        ]
                    })
            ])
        } else {
            for camera in all {
                try Output.line(
                    "\(camera.device) whiteBalanceGains=\(ValueText.rate(camera.given.red)),"
                        + ValueText.rate(camera.given.blue))
            }
        }
        let missed = all.filter { !$0.isGrey }.map(\.device)
        guard missed.isEmpty else {
            throw Failure(
                status: ExitStatus.refused,
                description: "The card is not quite grey with \(missed.joined(separator: ", ")): the gains do not "
                    + "reach far enough. Set a whiteBalanceTemperature nearer to the light first.")
        }
    }
}
