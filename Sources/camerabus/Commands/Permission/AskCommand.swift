import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct AskCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "ask", abstract: "Asks an administrator for permission to use cameras.",
        discussion: """
            An administrator sees the request in 'camerabus permissions' and in the log of the bus, and answers with 'camerabus allow' \
            or 'camerabus deny'. With --wait this program waits for the answer; without it the request stays all the same. \
            Who is refused already is told so at once, and nobody is asked.

            Printed is what is so: authorized, denied, restricted (the configuration says no) or notDetermined (nobody has answered). \
            The exit status is 0 for authorized, 4 for notDetermined, and 1 otherwise. With --json: the answer of authorization.request.

            EXAMPLES:
              camerabus ask video --reason 'measure the belt' --wait 60 && ./measure
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: PermissionText.mediaHelp)
    var media = MediaArgument.video

    @Option(help: ArgumentHelp("What for: a sentence that the administrator reads.", valueName: "text"))
    var reason: String

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Wait for the answer for so many seconds at most.", valueName: "seconds"))
    var wait: Seconds?

    func run(_ client: Client) async throws {
        let status = try await client.requestAuthorization(
            media.rawValue, reason: reason, wait: wait?.duration, timeout: timeout)
        if options.json {
            try Output.json(["media": .string(media.rawValue), "status": .string(status)])
        } else {
            try Output.line(status)
        }
        let uid = client.greeting.uid
        switch status {
        case "authorized": return
        case "notDetermined":
            Output.note(
                "Nobody has answered yet; 'camerabus allow \(uid) \(media.rawValue)', typed by an administrator, allows it."
            )
            throw ExitCode(ExitStatus.timedOut)
        default:
            Output.note("\(media.rawValue) is \(PermissionText.meaning(status, uid: uid, media.rawValue)).")
            throw ExitCode(ExitStatus.refused)
        }
    }
}
