import ArgumentParser
import BusClient
import JSON

struct ResetCommand: DeviceCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset", abstract: "Has a camera focus and expose continuously and in the middle again.",
        discussion: """
            Nothing else is touched. The controls that were set are printed, those that the camera has.

            With --json: the answer of device.resetFocusAndExposure.

            EXAMPLES:
              camerabus reset cam0
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var lock: LockOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var device: String

    func run(_ client: Client) async throws {
        let answer = try await client.resetFocusAndExposure(device, lock: lock.lock, timeout: timeout)
        if options.json { return try Output.json(answer) }
        let applied = answer["applied"]?[device]?["controls"]
        for name in answer["reset"]?.array?.compactMap(\.string) ?? [] {
            try Output.line("\(name)=\(ValueText.assigned(applied?[name]))")
        }
        PersistenceNote.note(answer)
    }
}
