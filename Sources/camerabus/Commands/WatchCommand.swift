import ArgumentParser
import BusClient
import JSON

struct WatchCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Prints state and events as they go by.",
        discussion: """
            State that matches is shown as it is first, then every change. A reader that is slow by more than 1000 messages loses some; \
            "previous" of the next one then says which. Ends by Ctrl-C, or with status 3 when not even the bus's heartbeat \
            comes for as long as --timeout says.

            With --json: the message per line, with "topic" beside its members: state has "value", an event "event".

            EXAMPLES:
              camerabus watch
              camerabus watch state/device/cam0 event/lock
              camerabus watch state/lock --json | jq -c '.topic, .value.holder'
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(
        help: """
            Topics or beginnings of topics; the final '/' is added (default: state and event, which is all but heartbeat).
            """)
    var topics: [String] = []

    @Option(name: .shortAndLong, help: ArgumentHelp("End after so many messages (default: never).", valueName: "count"))
    var number: Int?

    func validate() throws {
        if let number, number < 1 { throw ValidationError("--number takes a number above 0.") }
        if let topic = topics.first(where: { ["frame", "buffer", "audio", "level"].contains(Self.firstSegment($0)) }) {
            throw ValidationError("'\(topic)' is a topic of a device's own socket: see 'camerabus frames'.")
        }
    }

    func run(_ client: Client) async throws {
        let wanted = topics.isEmpty ? ["state/", "event/"] : topics.map(Self.complete)
        let messages = try await client.watch(wanted, silence: timeout, timeout: timeout)
        var left = number ?? .max
        do {
            while left > 0 {
                let message = try await messages.next()
                if options.json {
                    let members = message.json.object ?? ["message": message.json]
                    try Output.json(.object(members.merging(["topic": .string(message.topic)]) { $1 }))
                } else {
                    try Output.line("\(message.topic) \(Self.content(message.json))")
                }
                left -= 1
            }
        } catch ClientError.silent(let why) {
            throw Failure(status: ExitStatus.noBus, description: why)
        }
    }

    /// With the `/` at its end without which it would start nothing; nothing at all means everything.
    static func complete(_ topic: String) -> String { topic.isEmpty || topic.hasSuffix("/") ? topic : topic + "/" }

    /// What people want to see of a message: the value, or the event.
    static func content(_ message: JSONValue) -> JSONValue {
        guard let members = message.object, members["sequence"] != nil else { return message }
        if let value = members["value"] { return value }
        return .object(members.filter { !["epoch", "sequence", "previous"].contains($0.key) })
    }

    private static func firstSegment(_ topic: String) -> String {
        String(topic.prefix { $0 != "/" })
    }
}
