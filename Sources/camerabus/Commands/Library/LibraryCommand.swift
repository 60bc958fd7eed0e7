import ArgumentParser
import BusClient
import JSON
import LinuxIO

struct LibraryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "library",
        abstract: "Lists, shows, downloads and deletes the movies and photos in the library of the bus.",
        discussion: """
            You see what you have recorded and taken yourself; administrators see everything. When the bus starts, it \
            repairs movies that a crash or a power cut interrupted. Their state is then 'recovered' (they can be \
            played up to the last fragment) or 'damaged' (with the cause). The picture and the movie of a live photo \
            are one entry.

            A beginning of an id is enough if only one id has it.

            EXAMPLES:
              camerabus library
              camerabus library --device front --limit 10
              camerabus library --kind photo --hours 24
              camerabus library get 1f0c9a2b
              camerabus library fetch 1f0c9a2b -o belt.mp4
              camerabus library delete 1f0c9a2b
            """,
        subcommands: [List.self, Get.self, Fetch.self, Delete.self], defaultSubcommand: List.self)

    /// Completes the ids of entries by asking the bus.
    static let completion = CompletionKind.shellCommand("camerabus library list --ids 2>/dev/null")
    static let idHelp: ArgumentHelp = "The entry's id ('camerabus library' lists the ids), or its beginning."
}

extension LibraryCommand {
    struct List: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "Lists the entries, newest first.",
            discussion: """
                STATE is recording, finished, recovered, damaged, or missing (the file was removed). With --json: the \
                answer of library.list.
                """)

        @OptionGroup var options: GlobalOptions

        @Option(help: "Only entries of this camera or microphone: its id at that time, or its uniqueID.")
        var device: String?

        @Option(
            help: ArgumentHelp("Only this kind: movie, take or photo.", valueName: "kind"),
            completion: .list(["movie", "take", "photo"]))
        var kind: String?

        @Option(
            help: ArgumentHelp(
                "Only this state: recording, finished, recovered, damaged or missing.", valueName: "state"),
            completion: .list(["recording", "finished", "recovered", "damaged", "missing"]))
        var state: String?

        @Option(help: ArgumentHelp("Only entries of this take: its id, or its beginning.", valueName: "id"))
        var take: String?

        @Option(help: ArgumentHelp("Only the photos of this request: its uniqueID, or its beginning.", valueName: "id"))
        var photo: String?

        @Option(help: ArgumentHelp("Only entries that began in the last given hours.", valueName: "hours"))
        var hours: Double?

        @Option(help: ArgumentHelp("The largest number of entries, 1 to 1000.", valueName: "count"))
        var limit: Int?

        @Flag(help: "Print only the ids.")
        var ids = false

        func validate() throws {
            if let hours, !(hours > 0 && hours <= 1_000_000) {
                throw ValidationError("--hours takes a number greater than 0, up to 1000000.")
            }
            if let limit, !(1...1000).contains(limit) {
                throw ValidationError("--limit takes a number from 1 to 1000.")
            }
        }

        /// Nothing has what was typed: it may be the beginning of something.
        ///
        /// - Returns: whether it is.
        private func completeIDs(of filter: inout Client.LibraryFilter, _ client: Client) async throws -> Bool {
            let typed = filter
            if let photo { filter.photo = try await ShortID.photo(photo, client, timeout) }
            if let take { filter.take = try await ShortID.libraryTake(take, client, timeout) }
            return filter != typed
        }

        private var choosesAll: Bool {
            [device, kind, state, take, photo].allSatisfy { $0 == nil } && hours == nil
        }

        func run(_ client: Client) async throws {
            var filter = Client.LibraryFilter(
                since: hours.map { MonotonicClock.realtime() - Int64($0 * 3_600_000_000_000) }, kind: kind,
                device: device, state: state, take: take, photo: photo, limit: limit)
            var answer = try await client.library(filter, timeout: timeout)
            if answer["entries"]?.array?.isEmpty ?? true, try await completeIDs(of: &filter, client) {
                answer = try await client.library(filter, timeout: timeout)
            }
            let entries = answer["entries"]?.array ?? []
            if ids {
                for entry in entries { try Output.line(ValueText.plain(entry["id"])) }
                return
            }
            if options.json { return try Output.json(answer) }
            for entry in answer["unreadable"]?.array ?? [] {
                Output.note(
                    "The entry \(ValueText.plain(entry["id"])) can't be read: \(ValueText.plain(entry["why"])).")
            }
            guard !entries.isEmpty else {
                return Output.note(choosesAll ? "The library is empty." : "No entry of the library matches.")
            }
            try LibraryText.table(entries, isRemote: Download.isRemote(client)).print()
            if answer["more"]?.bool == true {
                Output.note("There are more entries. Use --limit, --device or --hours to select.")
            }
        }
    }

    struct Get: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "get", abstract: "Shows one entry.",
            discussion: "With --json: the entry, as library.get returns it.")

        @OptionGroup var options: GlobalOptions

        @Argument(help: idHelp, completion: completion)
        var id: String

        func run(_ client: Client) async throws {
            let entry = try await client.libraryEntry(
                try await ShortID.entry(id, client, timeout), timeout: timeout)
            if options.json { return try Output.json(entry) }
            let place = Download.isRemote(client) ? client.place.name : nil
            for line in LibraryText.lines(entry, on: place) { try Output.line(Table.printable(line)) }
        }
    }

    struct Delete: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "delete", abstract: "Deletes entries and their files.",
            discussion:
                "Stop a recording before you delete it. With --json: the answers of library.delete, one per line."
        )

        @OptionGroup var options: GlobalOptions

        @Argument(help: idHelp, completion: completion)
        var id: [String]

        func run(_ client: Client) async throws {
            for id in id {
                let answer = try await client.deleteFromLibrary(
                    try await ShortID.entry(id, client, timeout), timeout: timeout)
                if options.json {
                    try Output.json(answer)
                } else {
                    for path in answer["deleted"]?.array ?? [] {
                        try Output.line("deleted \(Table.printable(ValueText.plain(path)))")
                    }
                }
            }
        }
    }
}
