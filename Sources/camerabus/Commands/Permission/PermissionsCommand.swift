import ArgumentParser
import BusClient
import BusProtocol
import JSON
import LinuxIO

struct PermissionsCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "permissions",
        abstract: "Shows your permissions; to administrators also all requests and decisions.",
        discussion: """
            --reset deletes all decisions and requests of a user; the user may ask again.

            With --json: {"you": the result of the method authorization.status, "requests": […], "decisions": […]}, \
            the last two only for administrators; with --reset the result of the method authorization.reset.

            EXAMPLES:
              camerabus permissions
              camerabus permissions --reset ann
            """)

    @OptionGroup var options: GlobalOptions

    @Option(help: PermissionText.resetHelp, completion: PermissionText.userCompletion)
    var reset: UserArgument?

    func run(_ client: Client) async throws {
        if let reset {
            let answer = try await client.resetAuthorization(uid: reset.uid, timeout: timeout)
            if options.json { return try Output.json(answer) }
            let isChanged = answer["media"]?.array?.isEmpty == false
            try Output.line("\(reset.description) \(isChanged ? "may ask again." : "had no decisions or requests.")")
            return PersistenceNote.note(answer)
        }
        let status = try await client.call("authorization.status", timeout: timeout)
        let isAdmin = status["role"] == "admin"
        let all = isAdmin ? try await client.authorizations(timeout: timeout) : [:]
        if options.json {
            return try Output.json(
                .members(["you": status, "requests": all["requests"], "decisions": all["decisions"]]))
        }
        let uid = client.greeting.uid
        let remote = client.greeting.json["remote"]
        let who = remote.map {
            "the key '\(ValueText.plain($0["name"]))' with the role \(ValueText.plain($0["role"]))"
        }
        try Output.line("You are \(who ?? "uid \(uid)")\(isAdmin ? ", an administrator" : "").")
        for media in MediaArgument.allCases where !isAdmin {
            let word = status["authorization"]?[media.rawValue]?.string
            try Output.line(
                "  \(media.rawValue): \(PermissionText.meaning(word, uid: uid, media.rawValue, isKey: remote != nil))")
        }
        guard isAdmin else { return }
        let (requests, decisions) = (all["requests"]?.array ?? [], all["decisions"]?.array ?? [])
        try Output.line(requests.isEmpty ? "There are no requests." : "")
        if !requests.isEmpty { try Self.table(requests: requests).print() }
        guard !decisions.isEmpty else { return }
        try Output.line("")
        try Self.table(decisions: decisions).print()
    }

    static func table(requests: [JSONValue], now: Int64 = MonotonicClock.realtime()) -> Table {
        var table = Table("USER", "MEDIA", "SINCE", "PROGRAM", "REASON")
        for request in requests {
            table.add(
                user(request["uid"]), ValueText.plain(request["media"]), age(request["since"], now),
                "\(ValueText.plain(request["program"])) (pid \(ValueText.plain(request["pid"])))",
                request["reason"]?.string ?? "(tried to use it)")
        }
        return table
    }

    static func table(decisions: [JSONValue], now: Int64 = MonotonicClock.realtime()) -> Table {
        var table = Table("USER", "MEDIA", "STATUS", "SINCE", "BY")
        for decision in decisions {
            let word = decision["status"] == "authorized" ? "allowed" : "refused"
            table.add(
                user(decision["uid"]), ValueText.plain(decision["media"]),
                decision["once"] == true ? "\(word) once" : word, age(decision["since"], now), user(decision["by"]))
        }
        return table
    }

    private static func user(_ uid: JSONValue?) -> String {
        guard let uid = uid?.integer.flatMap({ UInt32(exactly: $0) }) else { return "-" }
        return UserArgument(uid: uid).description
    }

    private static func age(_ seconds: JSONValue?, _ now: Int64) -> String {
        let (time, overflow) = (seconds?.integer ?? 0).multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? "-" : ValueText.age(.integer(time), now: now)
    }
}
