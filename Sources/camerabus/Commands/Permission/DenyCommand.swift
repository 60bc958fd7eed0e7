import ArgumentParser
import BusClient

struct DenyCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "deny",
        abstract: "Forbids a user to use cameras, microphones or the library; only for administrators.",
        discussion: """
            A permission that the user already has is taken back. Within a second the user's programs get no more \
            pictures or sound, and the user's locks on these devices end. Other programs continue; those that read \
            frames from the same shared memory get a new stream.

            Without <media> the command denies all of them. The user can't ask again until an administrator runs \
            'camerabus allow' or 'camerabus permissions --reset USER'. With --once the user can ask again as soon as \
            none of the user's programs is connected to the bus, or the bus has ended.

            With --json: the result of the method authorization.deny.

            EXAMPLES:
              camerabus deny ann                  # everything
              camerabus deny ann audio --once
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var deciding: PermissionDecision

    @Flag(help: "Only until the user's last program on the bus ends. After that the user may ask again.")
    var once = false

    func run(_ client: Client) async throws {
        try await deciding.carryOut(client, isGranted: false, once: once, json: options.json, timeout: timeout)
    }
}
