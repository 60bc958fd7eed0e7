import ArgumentParser
import BusClient
import JSON

struct LocksCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "locks", abstract: "Lists the locks, their holders, and the clients that wait for one.",
        discussion: """
            A lock with a lease (a time limit) ends when the lease expires. A lock without one ends with the process \
            of its holder. FENCE is the number of the lock; a later lock has a higher number.

            With --json: {"locks": […], "waiting": […]}, as device.locks returns them.
            """)

    @OptionGroup var options: GlobalOptions

    func run(_ client: Client) async throws {
        let answer = try await client.call("device.locks", timeout: timeout)
        let locks = answer["locks"]?.array ?? []
        let waiting = answer["waiting"]?.array ?? []
        if options.json {
            try Output.json(["locks": .array(locks), "waiting": .array(waiting)])
        } else if locks.isEmpty {
            Output.note("Nothing is locked.")
        } else {
            try Self.table(locks).print()
        }
        guard !options.json, !waiting.isEmpty else { return }
        try Output.line("")
        try Self.table(waiting: waiting).print()
    }

    static func table(waiting: [JSONValue]) -> Table {
        var table = Table("WAITS FOR", "WHO", ">AT MOST", "NOTE")
        for wait in waiting {
            table.add(
                wait["devices"]?.array?.compactMap(\.string).joined(separator: ", ") ?? "-",
                ValueText.holder(wait["holder"]), ValueText.left(until: wait["until"]),
                ValueText.plain(wait["note"]))
        }
        return table
    }

    /// The locks of a snapshot, in the order in which they were taken.
    static func locks(_ state: JSONValue?) -> [JSONValue] {
        (state?.object ?? [:]).filter { $0.key.hasPrefix("state/lock/") }.map(\.value)
            .sorted { ($0["fence"]?.integer ?? 0) < ($1["fence"]?.integer ?? 0) }
    }

    static func table(_ locks: [JSONValue]) -> Table {
        var table = Table("DEVICES", "HOLDER", ">FENCE", ">SINCE", ">LEASE", "NOTE")
        for lock in locks {
            table.add(
                lock["devices"]?.array?.compactMap(\.string).joined(separator: ", ") ?? "-",
                ValueText.holder(lock["holder"]), ValueText.plain(lock["fence"]), ValueText.age(lock["since"]),
                lock["lease"]?.double.map { "\(ValueText.rate($0 / 1000)) s" } ?? "-", ValueText.plain(lock["note"]))
        }
        return table
    }
}
