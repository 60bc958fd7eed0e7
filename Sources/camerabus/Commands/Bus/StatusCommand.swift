import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct StatusCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Shows the bus, your permissions, the devices and the locks.",
        discussion: """
            With --json: {"bus": the result of the method bus.hello, "directory": …, "devices": […], "locks": […],
            "problems": [{"reason": …, "message": …}]}.
            """)

    @OptionGroup var options: GlobalOptions

    func run(_ client: Client) async throws {
        let devices = try await client.devices(timeout: timeout)
        let state = try await client.call("bus.snapshot", ["prefix": "state/"], timeout: timeout)["state"]
        let locks = LocksCommand.locks(state)
        let problems = state?["state/bus/"]?["problems"]?.array ?? []
        if options.json {
            return try Output.json([
                "bus": client.greeting.json, "directory": .string(client.place.name), "devices": .array(devices),
                "locks": .array(locks), "problems": .array(problems),
            ])
        }
        let greeting = client.greeting
        let started = state?["state/bus/"]?["started"]
        try Output.line(
            "CameraBus \(greeting.version) in \(client.place.name), up for \(ValueText.age(started))")
        let rights = greeting.authorization.keys.sorted().map { "\($0) \(greeting.authorization[$0] ?? "-")" }
        let remote = greeting.json["remote"]
        let user = remote?["name"]?.string.map { name in
            "'\(Table.printable(name))' with the role \(remote?["role"]?.string ?? "-")"
        }
        try Output.line("You are \(user ?? "uid \(greeting.uid)"): \(rights.joined(separator: ", "))")
        try Output.line("")
        try DevicesCommand.table(devices).print()
        for problem in problems {
            try Output.line("! \(Table.printable(problem["message"]?.string ?? ""))")
        }
        if !locks.isEmpty {
            try Output.line("")
            try LocksCommand.table(locks).print()
        }
    }
}
