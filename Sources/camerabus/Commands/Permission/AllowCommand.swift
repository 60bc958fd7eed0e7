import ArgumentParser
import BusClient

struct AllowCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "allow", abstract: "Allows a user to use cameras, for administrators.",
        discussion: """
            Whoever may connect to the bus sees its state. For pictures and sound, and to change anything, a user needs permission, \
            except root, the user that the bus runs as, and whom the configuration gives a role ([permission] in camerabus.toml). \
            'camerabus permissions' lists who has asked.

            Without MEDIA it is what the user has asked for, or else video. What is allowed holds until 'camerabus deny' or \
            'camerabus permissions --reset USER', also after a reboot; with --once until the user's last program that talks to the \
            bus has ended, or the bus. A program that waits for its frames gets them within a second.

            With --json: the answer of authorization.grant.

            EXAMPLES:
              camerabus allow ann
              camerabus allow ann video audio
              camerabus allow 1001 video --once
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var deciding: PermissionDecision

    @Flag(help: "Only until the user has left the bus.")
    var once = false

    func run(_ client: Client) async throws {
        try await deciding.carryOut(client, isGranted: true, once: once, json: options.json, timeout: timeout)
    }
}
