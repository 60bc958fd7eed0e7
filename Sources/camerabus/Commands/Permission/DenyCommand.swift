import ArgumentParser
import BusClient

struct DenyCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "deny", abstract: "Refuses a user the cameras, or takes a permission back, for administrators.",
        discussion: """
            Within a second the user's programs get no picture any more, by no way: their connections to the cameras end, and shared \
            memory that they have read is not written to again. Locks of the user on these devices end. Other readers of \
            'native' frames in shared memory see a new stream if this user had the same memory.

            Without MEDIA it is what the user has asked for, or else video. A user who is refused can't ask again, until \
            'camerabus allow' or 'camerabus permissions --reset USER'; with --once, until its last program that talks to the bus \
            has ended, or the bus.

            With --json: the answer of authorization.deny.

            EXAMPLES:
              camerabus deny ann
              camerabus deny ann audio --once
            """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var deciding: PermissionDecision

    @Flag(help: "Only until the user has left the bus; it may ask again then.")
    var once = false

    func run(_ client: Client) async throws {
        try await deciding.carryOut(client, isGranted: false, once: once, json: options.json, timeout: timeout)
    }
}
