import ArgumentParser
import BusClient
import JSON

struct LocksCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "locks", abstract: "Lists the locks and who holds them.",
        discussion: """
            FENCE is the lock's number: later locks have higher ones. A lock ends with its holder's process, or at the end of its lease.

            With --json: {"locks": […]}, the values of the state/lock/ topics.
            """)

    @OptionGroup var options: GlobalOptions

    func run(_ client: Client) async throws {
        let answer = try await client.call("bus.snapshot", ["prefix": "state/lock/"], timeout: timeout)
        let locks = Self.locks(answer["state"])
        if options.json {
            try Output.json(["locks": .array(locks)])
        } else if locks.isEmpty {
            Output.note("Nothing is locked.")
        } else {
            try Self.table(locks).print()
        }
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
                Describing.holder(lock["holder"]), Describing.plain(lock["fence"]), Describing.age(lock["since"]),
                lock["lease"]?.double.map { "\(Describing.rate($0 / 1000)) s" } ?? "-", Describing.plain(lock["note"]))
        }
        return table
    }
}
