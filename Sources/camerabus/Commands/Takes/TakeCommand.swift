import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct TakeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "take", abstract: "Records a movie in segments, of which any can be thrown away, and joins them.",
        discussion: """
            'camerabus take CAMERA' makes a whole take at the terminal, where each of these is typed with Enter behind it:

              (nothing)  begins a segment, and ends it
              d          throws the last one away
              f          joins them, as Ctrl-D and Ctrl-C do, and prints the movie's name
              x          throws all of them away

            It takes --mic MICROPHONE, or --session ID in the place of the camera; --min and --max SECONDS for all segments together; --preset SIZE for the largest picture of the movie; -o FILE, --force and \
            --name NAME for where it goes: 'camerabus take make --help' says more. The other commands do the same step by step, \
            in scripts: a take is its user's, and stays until it is finished or discarded, also when the bus or the machine is started again. Its segments are in the bus's \
            library until then.

            The finished movie is MP4, with H.264 and AAC, and has its first frame as cover beside it. It is joined as it was recorded where that can be, else encoded.

            EXAMPLES:
              camerabus take cam0 --mic mic0 --max 15 -o take.mp4
              id=$(camerabus take create cam0 --mic mic0)
              camerabus take record $id
              camerabus take pause $id
              camerabus take record $id && camerabus take pause $id
              camerabus take delete $id            # the last segment
              camerabus take finish $id -o take.mp4
            """,
        subcommands: [
            Make.self, Create.self, Record.self, Pause.self, List.self, Show.self, Delete.self, Finish.self,
            Discard.self,
        ], defaultSubcommand: Make.self)

    static let completion = CompletionKind.shellCommand("camerabus take list --ids 2>/dev/null")
    static let idHelp: ArgumentHelp =
        "The take's id, as 'camerabus take list' lists it, or its beginning, as long as only one begins so."

    /// Says when a take is shorter than it is to be; one that is over by now is not.
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
    /// What a new take is to be.
    struct Wishes: ParsableArguments {
        @Argument(help: "A camera's id.", completion: deviceCompletion)
        var device: String?

        @Option(help: ArgumentHelp("A session, in the place of a camera.", valueName: "session"))
        var session: String?

        @Option(
            name: .customLong("mic"), help: ArgumentHelp("A microphone for the sound.", valueName: "microphone"),
            completion: microphoneCompletion)
        var microphone: String?

        @Option(
            help: ArgumentHelp(
                "What its files in the library are called, without an ending (default: a new one).", valueName: "name"))
        var name: String?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp("How long it is to be at least; what is shorter is told.", valueName: "seconds"))
        var min: Seconds?

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp("How long it may become: recording ends by itself there.", valueName: "seconds"))
        var max: Seconds?

        @Option(
            help: ArgumentHelp(
                "The largest picture of the finished movie, 1280x720; what is larger is encoded (default: as recorded).",
                valueName: "size"),
            completion: .list(["640x480", "960x540", "1280x720", "1920x1080", "3840x2160"]))
        var preset: String?

        func validate() throws {
            if (device == nil) == (session == nil) { throw ValidationError("Name a camera, or a --session.") }
            if let max, max.value <= 0 { throw ValidationError("--max takes a number above 0.") }
            if let min, let max, min.value > max.value {
                throw ValidationError("--min is more than --max.")
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
                    "invalidParams: '\(device)' is a rig, and a take is of one camera: name \(rig.devices.joined(separator: " or ")). "
                        + "'camerabus record \(device)' records all of them."))
        }
    }

    struct Make: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Makes a whole take at the terminal.",
            discussion: """
                Enter begins a segment, and ends it. d and Enter throws the last one away, x and Enter all of them. f and Enter, Ctrl-D or Ctrl-C joins \
                them, and the movie's name is printed; without -o it is in the bus's library, and so it is with -o where the bus may not write there, and is \
                copied from there. If this program dies, the segment ends that it records, and the take stays: 'camerabus take list'.

                With --json: a line {"take": …} when it is made, then for each state {"take", "state"} and for each event {"take", "event", …}; the answer of \
                take.finish or take.discard is the last.
                """)

        @OptionGroup var options: GlobalOptions
        @OptionGroup var wishes: Wishes
        @OptionGroup var place: Place

        func validate() throws {
            guard InteractiveTake.hasTerminal else {
                throw ValidationError(
                    "That is for a terminal, where Enter begins and ends segments. In scripts: 'camerabus take create', record, pause and finish."
                )
            }
        }

        func run(_ client: Client) async throws {
            try await wishes.check(client, timeout: timeout)
            try await InteractiveTake(self, client).run()
        }
    }

    /// Where the finished movie goes.
    struct Place: ParsableArguments {
        @Option(
            name: .shortAndLong, help: ArgumentHelp("A file, or a folder for a name of its own.", valueName: "file"),
            completion: .file())
        var output: String?

        @Flag(help: "Replace a file that is there already, with its cover and its side-car, once the new one is whole.")
        var force = false

        func validate() throws {
            if force, output == nil { throw ValidationError("--force is about the file of -o.") }
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
                throw ValidationError("A take becomes an MP4 file: NAME.mp4.")
            }
            guard force || !MovieFileNames.exists(path) else {
                throw Failure(
                    status: ExitStatus.refused,
                    description: Table.printable("\(path) is there already; --force replaces it."))
            }
            return path
        }
    }

    struct Create: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Makes a take, of which nothing is recorded yet, and prints its id.",
            discussion: "With --json: the answer of take.create.")

        @OptionGroup var options: GlobalOptions
        @OptionGroup var wishes: Wishes

        func run(_ client: Client) async throws {
            try await wishes.check(client, timeout: timeout)
            var params = try await wishes.params(client, timeout)
            // The program that begins a segment ends at once. Those of a session end with that.
            if wishes.session == nil { params["detached"] = true }
            let take = try await client.createTake(params, timeout: timeout)
            try options.json ? Output.json(["take": take.json]) : Output.line(take.id)
        }
    }

    struct Record: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Begins a segment, and prints its id; its first frame is in the file then.",
            discussion: "With --json: the answer of take.record.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: idHelp, completion: TakeCommand.completion) var take: String

        func run(_ client: Client) async throws {
            let take = try await ShortID.take(take, client, timeout)
            let movie = try await client.recordTake(take, timeout: max(timeout, Client.movieTimeout))
            try options.json ? Output.json(movie.json) : Output.line(movie.id)
        }
    }

    struct Pause: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Ends the segment that is recorded; its file is on the disk then.",
            discussion: """
                It also tells when the take is shorter than its --min still. Exit status 0 also when it had ended by itself as wanted, and 1 with 'reason: message' when it had by something else.

                With --json: the answer of take.pause.
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
                STATE is paused, recording, ending or finishing; LEFT is how much can be recorded still.

                With --json: {"takes": […]}, as take.list answers.
                """)

        @OptionGroup var options: GlobalOptions

        @Flag(help: "Print the ids alone.")
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
            abstract: "Shows one take with its segments.", discussion: "With --json: the answer of take.get.")

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
            abstract: "Throws a segment away.", discussion: "With --json: the answer of take.delete.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: idHelp, completion: TakeCommand.completion) var take: String
        @Argument(help: "The segment's id, as 'camerabus take show' has it, or its beginning (default: the last one).")
        var segment: String?

        func run(_ client: Client) async throws {
            let take = try await ShortID.take(take, client, timeout)
            var meant: String?
            if let segment {
                meant = try await ShortID.segment(segment, of: take, client, timeout)
            } else {
                let found = try await client.take(take, timeout: timeout)
                // Who names none means the one that is recorded.
                guard found.segment == nil else {
                    throw Failure(
                        status: ExitStatus.refused,
                        description: Table.printable(
                            "recordingInProgress: A segment of the take \(take) is recorded; 'camerabus take pause \(take)' ends it."
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
                return try Output.json(["take": answer.take.json, "deleted": JSONValue(answer.deleted)])
            }
            for path in answer.deleted { try Output.line("deleted \(Table.printable(path))") }
        }
    }

    struct Finish: TakeStep {
        static let configuration = CommandConfiguration(
            abstract: "Joins the segments into one movie, and prints its name.",
            discussion: """
                Without -o it is in the bus's library; so it is with -o where the bus may not write there, and is copied from there. The take is over then; where it \
                fails, it is as it was. One that is shorter than its --min is joined all the same, and told. Ctrl-C ends this command, and not the joining.

                With --json: the answer of take.finish.
                """)

        @OptionGroup var options: GlobalOptions
        @OptionGroup var place: Place
        @Option(help: ArgumentHelp("What it is called in the library (default: as the take).", valueName: "name"))
        var name: String?
        @Argument(help: idHelp, completion: TakeCommand.completion) var take: String

        func validate() throws {
            if place.output != nil, name != nil { throw ValidationError("-o and --name are two places for one movie.") }
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
            abstract: "Throws takes away, with all of their segments.",
            discussion: "With --json: the files that were there, {\"take\", \"deleted\"}, a line for each take.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: idHelp, completion: TakeCommand.completion) var take: [String]

        func run(_ client: Client) async throws {
            try await ForEachName.run(take, of: "take", asJSON: options.json) { take in
                let take = try await ShortID.take(take, client, timeout)
                let deleted = try await client.discardTake(take, timeout: max(timeout, Client.movieTimeout))
                if options.json {
                    try Output.json(["take": .string(take), "deleted": JSONValue(deleted)])
                } else {
                    for path in deleted { try Output.line("deleted \(Table.printable(path))") }
                }
                return true
            }
        }
    }
}
