import ArgumentParser
import BusClient
import JSON

struct ProfilesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "profiles", abstract: "Keeps how devices are set under a name, and sets them so again.",
        discussion: """
            A profile holds the format, the frame rate and the controls of one or more devices. What a device was set to last comes back by \
            itself after a replug or a restart; profiles are for more than one way to set it.

            EXAMPLES:
              camerabus profiles save night cam0
              camerabus profiles
              camerabus profiles apply night
              camerabus profiles apply night cam1 --nearest --dry-run
              camerabus profiles delete night
            """,
        subcommands: [List.self, Save.self, Apply.self, Delete.self], defaultSubcommand: List.self)

    /// Completes the names of profiles by asking the bus.
    static let completion = CompletionKind.shellCommand("camerabus profiles list --names 2>/dev/null")
    static let nameHelp: ArgumentHelp = "The profile's name: 1 to 32 of a-z, 0-9 and '-'."
}

extension ProfilesCommand {
    struct List: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "Lists the profiles.",
            discussion: """
                A device that is not there now is shown by its uniqueID. With --json: {"profiles": […]}, as profile.list answers.
                """)

        @OptionGroup var options: GlobalOptions

        @Flag(help: "Print the names alone.")
        var names = false

        func run(_ client: Client) async throws {
            let profiles = try await client.profiles(timeout: timeout)
            if names {
                for known in profiles { try Output.line(ValueText.plain(known["name"])) }
                return
            }
            if options.json { return try Output.json(["profiles": .array(profiles)]) }
            guard !profiles.isEmpty else { return Output.note("There are no profiles.") }
            try Self.table(profiles).print()
        }

        static func table(_ profiles: [JSONValue]) -> Table {
            var table = Table("PROFILE", "DEVICE", "FORMAT", ">RATE", ">CONTROLS")
            for profile in profiles {
                for (index, device) in (profile["devices"]?.array ?? []).enumerated() {
                    table.add(
                        index == 0 ? ValueText.plain(profile["name"]) : "",
                        device["device"]?.string ?? ValueText.plain(device["uniqueID"]),
                        ValueText.format(device["activeFormat"]),
                        ValueText.rate(ofDuration: device["frameDuration"]),
                        String(device["controls"]?.object?.count ?? 0))
                }
            }
            return table
        }
    }

    struct Save: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "save", abstract: "Keeps how devices are set now, in the place of a profile of that name.",
            discussion: """
                All settings that count are kept: controls that can be set, and not those that an automatic mode sets. With --json: the \
                answer of profile.save.
                """)

        @OptionGroup var options: GlobalOptions

        @Argument(help: nameHelp, completion: completion)
        var name: String

        @Argument(help: "Ids of devices, or names of rigs.", completion: rigCompletion)
        var devices: [String]

        func run(_ client: Client) async throws {
            let answer = try await client.saveProfile(name, of: devices, timeout: timeout)
            if options.json { return try Output.json(answer) }
            try List.table([answer["profile"] ?? .null]).print()
            PersistenceNote.note(answer)
        }
    }

    struct Apply: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "apply", abstract: "Sets devices as a profile has it, all of them or none.",
            discussion: """
                Without DEVICE: those that the profile was saved of. Another device gets the settings of the one like it, or the only ones \
                that there are. What can't be had just so is refused; with --nearest what is nearest is taken, and told, and controls that \
                a device doesn't have are left out.

                The lock is the one of --lock or $CAMERABUS_LOCK; without one the devices are locked for just this change. With --json: the \
                answer of profile.apply.
                """)

        @OptionGroup var options: GlobalOptions
        @OptionGroup var lock: LockOptions

        @Argument(help: nameHelp, completion: completion)
        var name: String

        @Argument(help: "Ids of devices, or names of rigs.", completion: rigCompletion)
        var devices: [String] = []

        @Flag(help: "Take what is nearest when it can't be had just so.")
        var nearest = false

        @Flag(help: "Change nothing, only say what would come of it.")
        var dryRun = false

        func run(_ client: Client) async throws {
            let answer = try await client.applyProfile(
                name, to: devices, lock: lock.lock, mode: nearest ? .nearest : .exact, dryRun: dryRun, timeout: timeout)
            if options.json { return try Output.json(answer) }
            for (device, applied) in (answer["applied"]?.object ?? [:]).sorted(by: { $0.key < $1.key }) {
                try Output.line((dryRun ? "would be " : "") + FormatCommand.line(device, applied))
            }
            Adjustments.note(answer)
            PersistenceNote.note(answer)
        }
    }

    struct Delete: BusCommand {
        static let configuration = CommandConfiguration(commandName: "delete", abstract: "Forgets a profile.")

        @OptionGroup var options: GlobalOptions

        @Argument(help: nameHelp, completion: completion)
        var name: String

        func run(_ client: Client) async throws {
            let answer = try await client.deleteProfile(name, timeout: timeout)
            if options.json { return try Output.json(answer) }
            PersistenceNote.note(answer)
        }
    }
}
