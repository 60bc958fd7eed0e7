import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct AskCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "ask", abstract: "Asks an administrator for permission to use cameras or microphones.",
        discussion: """
            An administrator sees the request in 'camerabus permissions' and in the log of the bus, and answers with \
            'camerabus allow' or 'camerabus deny'. With --wait this program waits for the answer. Without it the \
            request stays open. If the user is already refused, the answer comes at once and no request is made.

            The status is printed: authorized, denied, restricted (refused by the configuration) or notDetermined (no \
            answer yet). The exit status is 0 for authorized, 4 for notDetermined, and 1 for the others. With --json: \
            the result of the method authorization.request.

            EXAMPLES:
              camerabus ask video --reason 'measure the belt' --wait 60 && ./measure
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: PermissionText.mediaHelp)
    var media = MediaArgument.video

    @Option(help: ArgumentHelp("The purpose, as one sentence for the administrator.", valueName: "text"))
    var reason: String

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Wait this many seconds for the answer at most.", valueName: "seconds"))
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
                "There is no answer yet. An administrator allows it with 'camerabus allow \(uid) \(media.rawValue)'."
            )
            throw ExitCode(ExitStatus.timedOut)
        default:
            Output.note("\(media.rawValue) is \(PermissionText.meaning(status, uid: uid, media.rawValue)).")
            throw ExitCode(ExitStatus.refused)
        }
    }
}
