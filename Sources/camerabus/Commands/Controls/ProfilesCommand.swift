import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct ProfilesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "profiles", abstract: "Stores settings of devices under a name, and applies them again.",
        discussion: """
            A profile stores the format, the frame rate and the controls of one or more devices. The bus restores the \
            last settings of a device by itself after a replug or a restart; use profiles when you need more than one \
            set of settings.

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
    static let nameHelp: ArgumentHelp = "The profile's name: \(DeviceID.form)."
}

extension ProfilesCommand {
    struct List: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "Lists the profiles.",
            discussion: """
                A device that is not connected is shown by its uniqueID. With --json: {"profiles": […]}, as \
                profile.list returns them.
                """)

        @OptionGroup var options: GlobalOptions

        @Flag(help: "Print only the names.")
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
            commandName: "save",
            abstract: "Stores the current settings of devices; replaces a profile of the same name.",
            discussion: """
                The profile contains the controls that can be set, without those that an automatic mode sets. With \
                --json: the result of the method profile.save.
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
            commandName: "apply", abstract: "Applies a profile to devices: to all of them, or to none.",
            discussion: """
                Without DEVICE the profile is applied to the devices that it was saved from. Another device gets the \
                settings of a device of the same model, or the only settings in the profile. If the exact values are \
                not possible, the command is refused. With --nearest the nearest values are set and shown, and \
                controls that a device does not have are left out.

                The lock is that of --lock or $CAMERABUS_LOCK. Without one the devices are locked only for this \
                change. With --json: the result of the method profile.apply.
                """)

        @OptionGroup var options: GlobalOptions
        @OptionGroup var lock: LockOptions

        @Argument(help: nameHelp, completion: completion)
        var name: String

        @Argument(help: "Ids of devices, or names of rigs.", completion: rigCompletion)
        var devices: [String] = []

        @Flag(help: "Accept the nearest possible values if the exact ones are not possible.")
        var nearest = false

        @Flag(help: "Change nothing; only show the result.")
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
        static let configuration = CommandConfiguration(commandName: "delete", abstract: "Deletes a profile.")

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
