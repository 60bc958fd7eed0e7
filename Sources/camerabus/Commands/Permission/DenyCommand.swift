import ArgumentParser
import BusClient

struct DenyCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "deny",
        abstract: "Refuses a user cameras or microphones, or takes a permission back; only for administrators.",
        discussion: """
            Within a second the user's programs get no more pictures or sound: their connections end, and shared \
            memory that they can read is no longer written. The user's locks on these devices end. Other readers of \
            'native' frames see a new stream if they shared this memory with the user.

            Without MEDIA the command refuses what the user has requested, or else video. A refused user can't ask \
            again until 'camerabus allow' or 'camerabus permissions --reset USER'; with --once, until the user's last \
            program on the bus ends, or the bus ends.

            With --json: the answer of authorization.deny.

            EXAMPLES:
              camerabus deny ann
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
