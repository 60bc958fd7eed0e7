import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct TakeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "take", abstract: "Records a movie in segments, lets you delete segments, and joins the rest.",
        discussion: """
            A take is a movie that you record in several segments. 'camerabus take CAMERA' makes one at the terminal. \
            Type one of these and press Enter:

              (nothing)  start a segment, or end it
              d          delete the last segment
              f          join the segments and print the movie's name; Ctrl-D and Ctrl-C do the same
              x          delete all segments

            Options: --mic MICROPHONE; --session ID instead of a camera; --min and --max SECONDS for the length of all \
            segments together; --preset SIZE for the largest picture of the movie; -o FILE, --force and --name NAME \
            for the result ('camerabus take make --help' explains them). The subcommands do the same step by step, for \
            scripts. A take belongs to its user. It is kept until you finish or discard it, also over a restart of \
            the bus or the machine. Until then its segments are in the library of the bus; without -o the movie stays \
            there.

            The finished movie is MP4 with H.264 and AAC. Its first frame is stored as a picture next to it. Segments \
            are joined without encoding if possible.

            EXAMPLES:
              camerabus take cam0 --mic mic0 --max 15 -o take.mp4
              id=$(camerabus take create cam0 --mic mic0)
              camerabus take record $id; sleep 5; camerabus take pause $id
              camerabus take record $id; sleep 5; camerabus take pause $id
              camerabus take delete $id            # the last segment
              camerabus take finish $id -o take.mp4
            """,
        subcommands: [
            Make.self, Create.self, Record.self, Pause.self, List.self, Show.self, Delete.self, Finish.self,
            Discard.self,
        ], defaultSubcommand: Make.self)

    static let completion = CompletionKind.shellCommand("camerabus take list --ids 2>/dev/null")
    static let idHelp: ArgumentHelp =
        "The take's id ('camerabus take list' lists the ids), or a beginning that only one id has."

    /// Notes if a take is shorter than its minimum. An ended take is not.
    static func noteShortness(of id: String, _ client: Client, timeout: Duration) async throws {
        do throws(ClientError) {
            let take = try await client.take(id, timeout: timeout)
            if let shortness = TakeText.shortness(take) { Output.note(Table.printable(shortness)) }
        } catch {
            guard error.reason == .takeNotFound else { throw error }
        }
    }
}

/// A command of `camerabus take`.
protocol TakeStep: BusCommand {}

extension TakeStep {
    static var typedName: String { TakeCommand.configuration.commandName ?? "" }
}

extension TakeCommand {
    /// The properties of a new take.
    struct Wishes: ParsableArguments {
        @Argument(help: "The id of a camera.", completion: deviceCompletion)
        var device: String?

        @Option(help: ArgumentHelp("A session, instead of a camera.", valueName: "session"))
        var session: String?

        @Option(
            name: .customLong("mic"), help: ArgumentHelp("The microphone for the sound.", valueName: "microphone"),
            completion: microphoneCompletion)
        var microphone: String?

        @Option(
            help: ArgumentHelp(
                "The name of its files in the library, without extension (default: chosen by the bus).",
                valueName: "name"))
        var name: String?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp("The minimum length; a shorter take is reported.", valueName: "seconds"))
        var min: Seconds?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp("The maximum length; recording ends there.", valueName: "seconds"))
        var max: Seconds?

        @Option(
            help: ArgumentHelp(
                "The largest picture of the finished movie, such as 1280x720; larger ones are scaled (default: no "
                    + "limit).",
                valueName: "size"),
            completion: .list(["640x480", "960x540", "1280x720", "1920x1080", "3840x2160"]))
        var preset: String?

        func validate() throws {
            if (device == nil) == (session == nil) { throw ValidationError("Name either a camera or a --session.") }
            if let max, max.value <= 0 { throw ValidationError("--max takes a number greater than 0.") }
            if let min, let max, min.value > max.value {
                throw ValidationError("--min is greater than --max.")
            }
        }

        /// The params of `take.create`, with a session whose id was typed in short.
        func params(_ client: Client, _ timeout: Duration) async throws -> [String: JSONValue] {
            var params: [String: JSONValue] = [:]
            params["device"] = device.map(JSONValue.string)
            if let session { params["session"] = .string(try await ShortID.session(session, client, timeout)) }
            params["microphone"] = microphone.map(JSONValue.string)
            params["name"] = name.map(JSONValue.string)
            params["minDuration"] = min.map { .number($0.value * 1000) }
            params["maxDuration"] = max.map { .number($0.value * 1000) }
            params["exportPreset"] = preset.map(JSONValue.string)
            return params
        }

        func check(_ client: Client, timeout: Duration) async throws {
            for device in [device, microphone].compactMap(\.self) {
                try await DeviceArgumentCheck.check(device, client, timeout: timeout)
            }
            guard let device else { return }
            let rigs = try await DeviceArgumentCheck.rigs(client, timeout: timeout)
            guard let rig = rigs.first(where: { $0.name == device }) else { return }
            throw Failure(
                status: ExitStatus.refused,
                description: Table.printable(
                    "invalidParams: '\(device)' is a rig, and a take records one camera. Name "
                        + "\(rig.devices.joined(separator: " or ")). 'camerabus record \(device)' records all of them.")
            )
        }
    }

    struct Make: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Makes a whole take at the terminal.",
            discussion: """
                Enter starts a segment, and ends it. d and Enter deletes the last segment, x and Enter deletes all. f \
                and Enter, Ctrl-D or Ctrl-C joins the segments, and prints the movie's name. Without -o the movie is \
                stored in the library of the bus. If the bus may not write to the path of -o, the movie is copied from \
                the library. If this program dies, its current segment ends, and the take is kept: see 'camerabus take \
                list'.

                With --json: a line {"take": …} at the start, then {"take", "state"} for each state and {"take", \
                "event", …} for each event; the last line is the result of the method take.finish or take.discard.
                """)

        @OptionGroup var options: GlobalOptions
        @OptionGroup var wishes: Wishes
        @OptionGroup var place: Place

        func validate() throws {
            guard InteractiveTake.hasTerminal else {
                throw ValidationError(
                    "This command needs a terminal. In scripts use 'camerabus take create', record, pause and finish."
                )
            }
        }

        func run(_ client: Client) async throws {
            try await wishes.check(client, timeout: timeout)
            try await InteractiveTake(self, client).run()
        }
    }

    /// The place of the finished movie.
    struct Place: ParsableArguments {
        @Option(
            name: .shortAndLong,
            help: ArgumentHelp("A file, or a folder in which a name is chosen automatically.", valueName: "file"),
            completion: .file())
        var output: String?

        @Flag(help: "Replace an existing file, its cover and its side-car, when the new one is finished.")
        var force = false

        func validate() throws {
            if force, output == nil { throw ValidationError("--force needs -o.") }
            if output == "" { throw ValidationError("-o takes the name of a file or a folder.") }
        }

        /// Absolute.
        ///
        /// - Parameter subject: what a name that is made here begins with.
        /// - Throws: ``Failure`` when there is such a file.
        func path(_ subject: String) throws -> String? {
            guard let output else { return nil }
            let places = try MovieFileNames(output, rig: nil, fileType: "mp4", count: 1, time: MovieFileNames.time)
            let path = try MovieFileNames.resolved(places.path(of: subject))
            guard path.lowercased().hasSuffix(".mp4") else {
                throw ValidationError("A take becomes an MP4 file. Use the extension .mp4.")
            }
            guard force || !MovieFileNames.exists(path) else {
                throw Failure(
                    status: ExitStatus.refused,
                    description: Table.printable("\(path) exists already; --force replaces it."))
            }
            return path
        }
    }

    struct Create: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Creates an empty take, and prints its id.",
            discussion: "With --json: the result of the method take.create.")

        @OptionGroup var options: GlobalOptions
        @OptionGroup var wishes: Wishes

        func run(_ client: Client) async throws {
            try await wishes.check(client, timeout: timeout)
            var params = try await wishes.params(client, timeout)
            // The program that begins a segment ends at once. Those of a session end with that.
            if wishes.session == nil { params["detached"] = true }
            let take = try await client.createTake(params, timeout: timeout)
            let kept: JSONValue? = take.isKept ? nil : false
            if options.json { return try Output.json(.members(["take": take.json, "kept": kept])) }
            PersistenceNote.note(isKept: take.isKept)
            try Output.line(take.id)
        }
    }

    struct Record: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Starts a segment, and prints its id as soon as its first frame is in the file.",
            discussion: "With --json: the result of the method take.record.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: idHelp, completion: TakeCommand.completion) var take: String

        func run(_ client: Client) async throws {
            let take = try await ShortID.take(take, client, timeout)
            let movie = try await client.recordTake(take, timeout: max(timeout, Client.movieTimeout))
            if options.json { return try Output.json(movie.json) }
            PersistenceNote.note(movie.json)
            try Output.line(movie.id)
        }
    }

    struct Pause: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Ends the current segment. Its file is then on the disk.",
            discussion: """
                It reports if the take is still shorter than its --min. The exit status is 0 also if the segment had \
                ended at a limit. It is 1, with 'reason: message', if the segment had ended by another cause.

                With --json: the result of the method take.pause.
                """)

        @OptionGroup var options: GlobalOptions
        @Argument(help: idHelp, completion: TakeCommand.completion) var take: String

        func run(_ client: Client) async throws {
            let take = try await ShortID.take(take, client, timeout)
            let ending = try await client.pauseTake(take, timeout: max(timeout, Client.movieTimeout))
            if options.json {
                try Output.json(ending.json)
            } else {
                Output.note(Table.printable(TakeText.ended(ending)))
                try await TakeCommand.noteShortness(of: take, client, timeout: timeout)
            }
            if !ending.isSuccess { throw ExitCode(ExitStatus.refused) }
        }
    }

    struct List: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Lists the takes that are neither finished nor discarded.",
            discussion: """
                STATE is paused, recording, ending or finishing. LEFT is the time that can still be recorded.

                With --json: {"takes": […]}, as take.list returns them.
                """)

        @OptionGroup var options: GlobalOptions

        @Flag(help: "Print only the ids.")
        var ids = false

        func run(_ client: Client) async throws {
            let takes = try await client.takes(timeout: timeout)
            if ids {
                for take in takes { try Output.line(take.id) }
            } else if options.json {
                try Output.json(["takes": .array(takes.map(\.json))])
            } else if takes.isEmpty {
                Output.note("There are no takes.")
            } else {
                try TakeText.table(takes).print()
            }
        }
    }

    struct Show: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Shows one take with its segments.", discussion: "With --json: the result of the method take.get."
        )

        @OptionGroup var options: GlobalOptions
        @Argument(help: idHelp, completion: TakeCommand.completion) var take: String

        func run(_ client: Client) async throws {
            let take = try await client.take(try await ShortID.take(take, client, timeout), timeout: timeout)
            if options.json { return try Output.json(["take": take.json]) }
            try TakeText.table([take]).print()
            if !take.segments.isEmpty { try TakeText.table(take.segments).print() }
        }
    }

    struct Delete: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Deletes a segment.", discussion: "With --json: the result of the method take.delete.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: idHelp, completion: TakeCommand.completion) var take: String
        @Argument(
            help: "The segment's id ('camerabus take show' shows it), or its beginning (default: the last segment).")
        var segment: String?

        func run(_ client: Client) async throws {
            let take = try await ShortID.take(take, client, timeout)
            var meant: String?
            if let segment {
                meant = try await ShortID.segment(segment, of: take, client, timeout)
            } else {
                let found = try await client.take(take, timeout: timeout)
                // Without an id the current segment would be meant.
                guard found.segment == nil else {
                    throw Failure(
                        status: ExitStatus.refused,
                        description: Table.printable(
                            "recordingInProgress: A segment of the take \(take) is being recorded. End it first: "
                                + "camerabus take pause \(take)"
                        ))
                }
                meant = found.segments.last?.id
            }
            guard let segment = meant else {
                throw Failure(
                    status: ExitStatus.refused, description: Table.printable("The take \(take) has no segments."))
            }
            let answer = try await client.deleteSegment(segment, ofTake: take, timeout: timeout)
            if options.json {
                return try Output.json(
                    .members([
                        "take": answer.take.json, "deleted": JSONValue(answer.deleted),
                        "kept": answer.take.isKept ? nil : false,
                    ]))
            }
            PersistenceNote.note(isKept: answer.take.isKept)
            for path in answer.deleted { try Output.line("deleted \(Table.printable(path))") }
        }
    }

    struct Finish: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Joins the segments into one movie, and prints its name.",
            discussion: """
                Without -o the movie is stored in the library of the bus. If the bus may not write to the path of -o, \
                the movie is copied from the library. The take has then ended. After an error it is unchanged. A take \
                that is shorter than its --min is joined too, and this is reported. Ctrl-C ends this command, but not \
                the joining.

                With --json: the result of the method take.finish.
                """)

        @OptionGroup var options: GlobalOptions
        @OptionGroup var place: Place
        @Option(help: ArgumentHelp("The name in the library (default: the name of the take).", valueName: "name"))
        var name: String?
        @Argument(help: idHelp, completion: TakeCommand.completion) var take: String

        func validate() throws {
            if place.output != nil, name != nil {
                throw ValidationError("-o and --name can't be used together: a movie goes to one place.")
            }
        }

        func run(_ client: Client) async throws {
            let target = try place.path("take")
            let take = try await ShortID.take(take, client, timeout)
            if !options.json { try await TakeCommand.noteShortness(of: take, client, timeout: timeout) }
            let finishing = TakeJoin(client: client, patience: max(timeout, Client.finishingTimeout))
            let finished = try await finishing.finish(take, to: target, name: name, replaces: place.force)
            try TakeText.tell(finished, asJSON: options.json)
        }
    }

    struct Discard: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Deletes takes with all of their segments.",
            discussion: "With --json: {\"take\", \"deleted\"} with the deleted files, one line per take.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: idHelp, completion: TakeCommand.completion) var take: [String]

        func run(_ client: Client) async throws {
            try await ForEachName.run(take, of: "take", asJSON: options.json) { take in
                let take = try await ShortID.take(take, client, timeout)
                let (deleted, isKept) = try await client.discardTake(take, timeout: max(timeout, Client.movieTimeout))
                if options.json {
                    try Output.json(
                        .members([
                            "take": .string(take), "deleted": JSONValue(deleted), "kept": isKept ? nil : false,
                        ]))
                } else {
                    PersistenceNote.note(isKept: isKept)
                    for path in deleted { try Output.line("deleted \(Table.printable(path))") }
                }
                return true
            }
        }
    }
}
