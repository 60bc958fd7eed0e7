import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct RigsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rigs",
        abstract: "Manages rigs: named groups of devices that are locked, configured and matched together.",
        discussion: """
            The name of a rig stands for its devices in 'lock', 'session', 'profiles' and 'rigs set', and in \
            device.configure. Such a command applies to all of its devices, or to none. Its first device leads: \
            'camerabus frames RIG --set' delivers, for each frame of the leading device, the frames of the others that \
            were taken at the same time. Rigs of the configuration file ([[rig]]) can only be changed there.

            EXAMPLES:
              camerabus rigs set stereo left right
              camerabus rigs
              camerabus lock stereo -- ./calibrate.py
              camerabus frames stereo jpeg:640x0 --set
              camerabus rigs delete stereo
            """,
        subcommands: [List.self, Set.self, Delete.self], defaultSubcommand: List.self)

    /// Completes the names of rigs by asking the bus.
    static let completion = CompletionKind.shellCommand("camerabus rigs list --names 2>/dev/null")
    static let nameHelp: ArgumentHelp = "The rig's name: \(DeviceID.form)."
}

/// Completes ids of devices and names of rigs.
let rigCompletion = CompletionKind.shellCommand(
    "camerabus devices --ids 2>/dev/null; camerabus rigs list --names 2>/dev/null")

extension RigsCommand {
    struct List: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "Lists the rigs.",
            discussion: """
                A device that is not connected is shown by its uniqueID with a question mark. With --json: {"rigs": \
                […]}, as rig.list returns them.
                """)

        @OptionGroup var options: GlobalOptions

        @Flag(help: "Print only the names.")
        var names = false

        func run(_ client: Client) async throws {
            let rigs = try await client.rigs(timeout: timeout)
            if names {
                for known in rigs { try Output.line(ValueText.plain(known["name"])) }
                return
            }
            if options.json { return try Output.json(["rigs": .array(rigs)]) }
            guard !rigs.isEmpty else { return Output.note("There are no rigs.") }
            try Self.table(rigs).print()
        }

        static func table(_ rigs: [JSONValue]) -> Table {
            var table = Table("RIG", "DEVICES", ">TOLERANCE", "STATE", "FROM")
            for rig in rigs {
                let devices = (rig["devices"]?.array ?? []).map { device in
                    device["id"]?.string ?? ValueText.plain(device["uniqueID"]) + "?"
                }
                let away = (rig["devices"]?.array ?? []).filter { $0["connected"] != true }
                    .map { $0["id"]?.string ?? ValueText.plain($0["uniqueID"]) }
                table.add(
                    ValueText.plain(rig["name"]), devices.joined(separator: ", "),
                    rig["tolerance"]?.double.map { "\(ValueText.rate($0)) ms" } ?? "-",
                    away.isEmpty ? "complete" : "without \(away.joined(separator: ", "))",
                    rig["configured"] == true ? "configuration" : "client")
            }
            return table
        }
    }

    struct Set: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "set", abstract: "Creates or changes a rig.",
            discussion: "With --json: the result of the method rig.set.")

        @OptionGroup var options: GlobalOptions

        @Argument(help: nameHelp, completion: completion)
        var name: String

        @Argument(help: "The ids of the devices; the first one leads.", completion: deviceCompletion)
        var devices: [String]

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp(
                "The largest time between frames of a set (default: half of the time between frames of the leading "
                    + "device).",
                valueName: "milliseconds"))
        var tolerance: Double?

        func validate() throws {
            if let tolerance, !(0...10_000).contains(tolerance) {
                throw ValidationError("--tolerance takes milliseconds, 0 to 10000.")
            }
        }

        func run(_ client: Client) async throws {
            let answer = try await client.setRig(
                name, devices: devices, tolerance: tolerance.map { .milliseconds(1) * $0 }, timeout: timeout)
            if options.json { return try Output.json(answer) }
            try List.table([answer["rig"] ?? .null]).print()
            PersistenceNote.note(answer)
        }
    }

    struct Delete: BusCommand {
        static let configuration = CommandConfiguration(commandName: "delete", abstract: "Deletes a rig.")

        @OptionGroup var options: GlobalOptions

        @Argument(help: nameHelp, completion: completion)
        var name: String

        func run(_ client: Client) async throws {
            let answer = try await client.deleteRig(name, timeout: timeout)
            if options.json { return try Output.json(answer) }
            PersistenceNote.note(answer)
        }
    }
}
