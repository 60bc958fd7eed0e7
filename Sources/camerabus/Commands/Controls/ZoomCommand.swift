import ArgumentParser
import BusClient
import JSON

struct ZoomCommand: DeviceCommand {
    static let configuration = CommandConfiguration(
        commandName: "zoom", abstract: "Zooms a camera smoothly.",
        discussion: """
            FACTOR is the magnification; 1 shows the whole picture. --value takes a share of the range instead, from 0 \
            to 1, in steps that look equally large. The command ends when the zoom begins, and prints how many seconds \
            the zoom will take; meanwhile rampingVideoZoom is true. 'camerabus set DEVICE videoZoomFactor=2' zooms at \
            once.

            If the camera can't zoom, the bus enlarges the middle of the pictures that it makes; 'camerabus controls' \
            then shows digital_zoom. Native frames, and the JPEG frames that a camera makes itself, are not enlarged.

            With --json: the result of the method device.zoomRamp or device.cancelZoomRamp.

            EXAMPLES:
              camerabus zoom cam0 4 --rate 0.5
              camerabus zoom cam0 --value 0
              camerabus zoom cam0 --cancel
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    @Argument(help: ArgumentHelp("The zoom factor at the end.", valueName: "factor"))
    var factor: Double?

    @Option(help: ArgumentHelp("The share of the range at the end, from 0 to 1.", valueName: "share"))
    var value: Double?

    @Option(help: ArgumentHelp("The speed, in doublings per second.", valueName: "rate"))
    var rate = 1.0

    @Flag(help: "Stop the zoom at its current factor.")
    var cancel = false

    func validate() throws {
        guard [factor != nil, value != nil, cancel].count(where: { $0 }) == 1 else {
            throw ValidationError("Give either a factor, --value or --cancel.")
        }
        if let value, !(0...1).contains(value) { throw ValidationError("--value takes a number from 0 to 1.") }
        guard (0.001...1000).contains(rate) else { throw ValidationError("--rate takes a number from 0.001 to 1000.") }
    }

    func run(_ client: Client) async throws {
        if cancel {
            let answer = try await client.cancelZoomRamp(device, lock: lock.lock, timeout: timeout)
            if options.json { return try Output.json(answer) }
            return PersistenceNote.note(answer)
        }
        let target = value.map(Client.ZoomTarget.value) ?? .factor(factor ?? 1)
        let answer = try await client.zoomRamp(device, to: target, rate: rate, lock: lock.lock, timeout: timeout)
        if options.json { return try Output.json(answer) }
        try Output.line(ValueText.rate((answer["milliseconds"]?.double ?? 0) / 1000))
        PersistenceNote.note(answer)
    }
}
