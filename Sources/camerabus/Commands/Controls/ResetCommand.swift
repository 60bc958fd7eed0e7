import ArgumentParser
import BusClient
import JSON

struct ResetCommand: DeviceCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset", abstract: "Sets focus and exposure back to continuous, for the middle of the picture.",
        discussion: """
            Other controls are not changed. The controls that were set are printed.

            With --json: the result of the method device.resetFocusAndExposure.

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
