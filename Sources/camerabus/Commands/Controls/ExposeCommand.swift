import ArgumentParser
import BusClient
import JSON

struct ExposeCommand: DeviceCommand {
    static let configuration = CommandConfiguration(
        commandName: "expose", abstract: "Exposes a camera for a point of its picture.",
        discussion: """
            The camera keeps exposing for this point. If the camera can't do that, the bus measures the picture there \
            and sets exposure time and gain; then 0.5,0.5 (the middle) gives the control back to the camera. With \
            --then-lock the bus locks the exposure as soon as it is stable, under a lock of its own. If another client \
            has locked the device by then, the exposure is not locked, and the event exposureLockFailed is published. \
            To expose once for the current picture: camerabus set DEVICE exposureMode=autoExpose.

            With --json: the result of the method device.expose.

            EXAMPLES:
              camerabus expose cam0 0.9,0.4
              camerabus expose cam0 0.9,0.4 --then-lock
              camerabus set cam0 exposureDuration=1/100 ISO=200
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    @Argument(help: pointHelp, transform: PointArgument.init(reading:))
    var point: PointArgument

    @Flag(help: "Lock the exposure when it is stable.")
    var thenLock = false

    func run(_ client: Client) async throws {
        let answer = try await client.expose(
            device, at: point.point, thenLock: thenLock, lock: lock.lock, timeout: timeout)
        if options.json { return try Output.json(answer) }
        if thenLock, answer["willLock"] != true {
            Output.note("\(device) can't lock its exposure. It keeps exposing for that point.")
        }
        PersistenceNote.note(answer)
    }
}
