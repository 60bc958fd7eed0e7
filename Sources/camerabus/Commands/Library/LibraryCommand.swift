import ArgumentParser
import BusClient
import JSON
import LinuxIO

struct LibraryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "library",
        abstract: "Lists movies and photos that the bus keeps, tells about one of them, brings it here, and deletes.",
        discussion: """
            Everybody sees what he has recorded and taken himself, administrators everything. What was recorded when its recorder died, or the power \
            went, is mended when the bus starts: it is 'recovered', and plays up to its last fragment, or 'damaged', and says why. The picture and the movie of a live photo are one entry: both are there, and both are deleted.

            Of an id its beginning is enough, as long as only one begins so.

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
    static let idHelp: ArgumentHelp = "The entry's id, as 'camerabus library' lists it, or its beginning."
}

extension LibraryCommand {
    struct List: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "Lists what there is, the newest first.",
            discussion: """
                STATE is recording, finished, recovered, damaged, or missing where somebody has removed the file. With --json: the answer \
                of library.list.
                """)

        @OptionGroup var options: GlobalOptions

        @Option(help: "Only what this camera or microphone took part in: its id of then, or its uniqueID.")
        var device: String?

        @Option(
            help: ArgumentHelp("Only movie, take or photo.", valueName: "kind"),
            completion: .list(["movie", "take", "photo"]))
        var kind: String?

        @Option(
            help: ArgumentHelp("Only recording, finished, recovered, damaged or missing.", valueName: "state"),
            completion: .list(["recording", "finished", "recovered", "damaged", "missing"]))
        var state: String?

        @Option(help: ArgumentHelp("Only what belongs to this take: its id, or its beginning.", valueName: "id"))
        var take: String?

        @Option(help: ArgumentHelp("Only the photos of this request: its uniqueID, or its beginning.", valueName: "id"))
        var photo: String?

        @Option(help: ArgumentHelp("Only what began in the last so many hours.", valueName: "hours"))
        var hours: Double?

        @Option(help: ArgumentHelp("How many at most, 1 to 1000.", valueName: "count"))
        var limit: Int?

        @Flag(help: "Print the ids alone.")
        var ids = false

        func validate() throws {
            if let hours, !(hours > 0 && hours <= 1_000_000) { throw ValidationError("--hours must be above 0") }
            if let limit, !(1...1000).contains(limit) { throw ValidationError("--limit takes a number from 1 to 1000") }
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
                return Output.note(choosesAll ? "There is nothing in the library." : "Nothing in the library matches.")
            }
            try LibraryText.table(entries, isRemote: Download.isRemote(client)).print()
            if answer["more"]?.bool == true { Output.note("There are more; --limit, --device or --hours chooses.") }
        }
    }

    struct Get: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "get", abstract: "Tells what is known of one entry.",
            discussion: "With --json: the entry alone, as library.get answers it.")

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
            commandName: "delete", abstract: "Removes the files of entries, and the entries.",
            discussion:
                "What is being recorded has to be stopped first. With --json: the answers of library.delete, a line each."
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
