import ArgumentParser
import BusClient
import JSON

struct FocusCommand: DeviceCommand {
    static let configuration = CommandConfiguration(
        commandName: "focus", abstract: "Focuses a camera once at a point of its picture.",
        discussion: """
            For continuous focus: camerabus set DEVICE focusMode=continuousAutoFocus. To move the lens by hand: \
            camerabus set DEVICE lensPosition=0.3. 'camerabus controls DEVICE' shows whether the camera has these \
            controls.

            With --json: the result of the method device.focus.

            EXAMPLES:
              camerabus focus cam0 0.5,0.5
              camerabus watch state/device/cam0 --json | jq -c .value.controls.adjustingFocus
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    @Argument(help: pointHelp, transform: PointArgument.init(reading:))
    var point: PointArgument

    func run(_ client: Client) async throws {
        let answer = try await client.focus(device, at: point.point, lock: lock.lock, timeout: timeout)
        if options.json { return try Output.json(answer) }
        PersistenceNote.note(answer)
    }
}
