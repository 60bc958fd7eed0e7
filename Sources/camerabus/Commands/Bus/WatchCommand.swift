import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct WatchCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Prints state and events as they are published.",
        discussion: """
            First the current state of the matching topics is shown, then every change. A reader that is more than \
            1000 messages behind loses some; "previous" of the next message then shows how many. 'watch' also waits \
            for a device that is not connected, and prints a note about it. Ctrl-C ends it. It ends with status 3 when \
            not even the heartbeat of the bus arrives within --timeout.

            TOPICS:
              state/bus/, state/device/ID/, state/lock/ID/  current state: of the bus, a device, a lock
              state/movie/ID/, state/take/ID/               progress of a movie or a take
              event/device/ID/, event/lock/ID/, …           events of a device, a lock, …
              heartbeat/                                    once a second

            With --json: one message per line, with its members and "topic": state has "value", an event has "event".

            EXAMPLES:
              camerabus watch
              camerabus watch state/device/cam0 event/lock
              camerabus watch state/lock --json | jq -c '[.topic, .value.holder.name]'
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(
        help: """
            Topics or beginnings of topics; a missing '/' at the end is added (default: state and event: all except \
            heartbeat).
            """, completion: BusCompletion.topics)
    var topics: [String] = []

    @Option(
        name: .shortAndLong, parsing: .unconditional,
        help: ArgumentHelp("End after this many messages (default: never).", valueName: "count"))
    var number: Int?

    func validate() throws {
        if let number, number < 1 { throw ValidationError("--number takes a number greater than 0.") }
        if let topic = topics.first(where: { ["frame", "buffer", "audio", "level"].contains(Self.firstSegment($0)) }) {
            throw ValidationError(
                "'\(topic)' is a topic of the device's own socket. Use 'camerabus frames' for frames and 'camerabus "
                    + "sound' for sound."
            )
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
                    let content = Self.content(message.json).description.escapedInJSON
                    try Output.line("\(message.topic.printable) \(content)")
                }
                left -= 1
            }
        } catch ClientError.silent(let why) {
            throw Failure(status: ExitStatus.noBus, description: why)
        }
    }

    /// The topic with `/` at its end. An empty topic means all topics.
    static func complete(_ topic: String) -> String { topic.isEmpty || topic.hasSuffix("/") ? topic : topic + "/" }

    /// The part of a message that is shown to people: the value, or the event.
    static func content(_ message: JSONValue) -> JSONValue {
        guard let members = message.object, members["sequence"] != nil else { return message }
        if let value = members["value"] { return value }
        return .object(members.filter { !["epoch", "sequence", "previous"].contains($0.key) })
    }

    /// Whether a topic may begin like this.
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
        return "No topic begins with '\(complete(topic))'. Topics: \(known).\(hint)"
    }

    /// Notes unknown ids. They are no error, as a device may be connected later; but with a mistyped id `watch` would
    /// wait for ever.
    private func noteMissing(_ topics: [String], _ client: Client) async throws {
        var ids: [(kind: String, id: String)] = []
        for case let id? in topics.map(Self.id) where !ids.contains(where: { $0 == id }) { ids.append(id) }
        if ids.isEmpty { return }
        let snapshot = try await client.call("bus.snapshot", ["prefix": "state/"], timeout: timeout)
        let state = snapshot["state"]?.object ?? [:]
        for (kind, id) in ids where state["state/\(kind)/\(id)/"] == nil {
            let known = state.keys.compactMap(Self.id).filter { $0.kind == kind }.map(\.id).sorted()
            let list = known.isEmpty ? "there are none" : "known: \(known.joined(separator: ", "))"
            Output.note(
                kind == "device"
                    ? "There is no device '\(id)' (\(list)). Waiting for it to be connected."
                    : "There is no \(kind) with the id '\(id)' (\(list)).")
        }
    }

    /// The kind and id of a topic, for example `device` and its id; nil for a topic of several.
    private static func id(_ topic: String) -> (kind: String, id: String)? {
        let parts = topic.split(separator: "/")
        guard parts.count == 3, ["device", "lock", "session", "movie", "take"].contains(parts[1]) else { return nil }
        return (String(parts[1]), String(parts[2]))
    }

    private static func firstSegment(_ topic: String) -> String {
        String(topic.prefix { $0 != "/" })
    }
}
