import ArgumentParser
import BusClient

struct AllowCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "allow", abstract: "Allows a user to use cameras or microphones; only for administrators.",
        discussion: """
            Every user who can connect to the bus can see its state. To get pictures or sound, or to change anything, \
            a user needs permission. Exceptions are root, the user that runs the bus, and users with a role in the \
            configuration ([permission] in camerabus.toml). 'camerabus permissions' lists the open requests.

            Without <media> the command allows what the user has requested, or else video. The permission lasts until \
            'camerabus deny' or 'camerabus permissions --reset USER', also after a reboot. With --once it lasts until \
            none of the user's programs is connected to the bus any more, or the bus ends. A program that waits for \
            frames gets them within a second.

            With --json: the result of the method authorization.grant.

            EXAMPLES:
              camerabus allow ann
              camerabus allow ann video audio
              camerabus allow 1001 video --once
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var deciding: PermissionDecision

    @Flag(help: "Only until the user's last program on the bus ends.")
    var once = false

    func run(_ client: Client) async throws {
        try await deciding.carryOut(client, isGranted: true, once: once, json: options.json, timeout: timeout)
    }
}
