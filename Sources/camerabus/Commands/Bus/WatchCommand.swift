import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct WatchCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Prints state and events as they go by.",
        discussion: """
            State that matches is shown as it is first, then every change. A reader that is slow by more than 1000 messages loses some; \
            "previous" of the next one then says which. A device that isn't there is waited for, and told. Ends by Ctrl-C, or with status 3 when not even the bus's heartbeat \
            comes for as long as --timeout says.

            TOPICS:
              state/bus/, state/device/ID/, state/lock/ID/  what is: the bus, a device, a lock
              state/movie/ID/, state/take/ID/               how far a movie is, or a take
              event/device/ID/, event/lock/ID/, …           what happens to them
              heartbeat/                                    once a second

            With --json: the message per line, with "topic" beside its members: state has "value", an event "event".

            EXAMPLES:
              camerabus watch
              camerabus watch state/device/cam0 event/lock
              camerabus watch state/lock --json | jq -c '[.topic, .value.holder.name]'
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(
        help: """
            Topics or beginnings of topics; the final '/' is added (default: state and event, which is all but heartbeat).
            """, completion: BusCompletion.topics)
    var topics: [String] = []

    @Option(
        name: .shortAndLong, parsing: .unconditional,
        help: ArgumentHelp("End after so many messages (default: never).", valueName: "count"))
    var number: Int?

    func validate() throws {
        if let number, number < 1 { throw ValidationError("--number takes a number above 0.") }
        if let topic = topics.first(where: { ["frame", "buffer", "audio", "level"].contains(Self.firstSegment($0)) }) {
            throw ValidationError("'\(topic)' is a topic of a device's own socket: see 'camerabus frames'.")
        }
        if let topic = topics.first(where: { !Self.isKnown(Self.complete($0)) }) {
            throw ValidationError(Self.unknown(topic))
        }
    }

    func run(_ client: Client) async throws {
        let wanted = topics.isEmpty ? ["state/", "event/"] : topics.map(Self.complete)
        let messages = try await client.watch(wanted, silence: timeout, timeout: timeout)
        try await noteMissing(wanted, client)
        var left = number ?? .max
        var freshness = RepeatedStateFilter()
        do {
            while left > 0 {
                let message = try await messages.next()
                guard freshness.isNews(topic: message.topic, message.json) else { continue }
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

    /// Whether there can be a topic that begins so.
    static func isKnown(_ topic: String) -> Bool {
        let asked = topic.split(separator: "/")
        return TopicTable.all.contains { entry in
            guard entry.socket != "media" else { return false }
            let parts = entry.topic.split(separator: "/")
            return asked.count <= parts.count && zip(asked, parts).allSatisfy { $0 == $1 || $1.hasPrefix("<") }
        }
    }

    static func unknown(_ topic: String) -> String {
        let topics = TopicTable.all.filter { $0.socket == "events" }.map(\.topic)
        let known = topics.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }.joined(separator: ", ")
        let hint =
            DeviceID.isValid(topic)
            ? " To watch a device: camerabus watch state/device/\(topic) event/device/\(topic)" : ""
        return "There are no topics that begin with '\(complete(topic))'; there are \(known).\(hint)"
    }

    /// A device may still come, and a lock is over when it is: neither is an error, but who has mistyped an id would wait for ever.
    private func noteMissing(_ topics: [String], _ client: Client) async throws {
        var ids: [(kind: String, id: String)] = []
        for case let id? in topics.map(Self.id) where !ids.contains(where: { $0 == id }) { ids.append(id) }
        if ids.isEmpty { return }
        let snapshot = try await client.call("bus.snapshot", ["prefix": "state/"], timeout: timeout)
        let state = snapshot["state"]?.object ?? [:]
        for (kind, id) in ids where state["state/\(kind)/\(id)/"] == nil {
            let known = state.keys.compactMap(Self.id).filter { $0.kind == kind }.map(\.id).sorted()
            let list = known.isEmpty ? "there are none" : "there are \(known.joined(separator: ", "))"
            Output.note(
                kind == "device"
                    ? "No device is called '\(id)' (\(list)); waiting for it to come."
                    : "No \(kind) has the id '\(id)' (\(list)).")
        }
    }

    /// What a topic is about: `device` and its id, `lock` or `session`; nil for one that is about several.
    private static func id(_ topic: String) -> (kind: String, id: String)? {
        let parts = topic.split(separator: "/")
        guard parts.count == 3, ["device", "lock", "session", "movie", "take"].contains(parts[1]) else { return nil }
        return (String(parts[1]), String(parts[2]))
    }

    private static func firstSegment(_ topic: String) -> String {
        String(topic.prefix { $0 != "/" })
    }
}
