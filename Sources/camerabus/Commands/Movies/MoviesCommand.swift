import ArgumentParser
import BusClient
import BusProtocol
import JSON

struct MoviesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "movies", abstract: "Lists the movies that are being recorded; pauses, resumes and stops them.",
        discussion: """
            'camerabus record' starts movies. A movie ends with the program that started it, unless that used \
            --detach. Its owner and administrators may stop, pause and resume it.

            EXAMPLES:
              camerabus movies
              id=$(camerabus record cam0 --detach)
              camerabus movies pause $id
              camerabus movies resume $id
              camerabus movies stop $id
              camerabus movies stop stereo
              camerabus movies stop $(camerabus movies list --ids)
            """,
        subcommands: [List.self, Show.self, Stop.self, Pause.self, Resume.self], defaultSubcommand: List.self)

    static let completion = CompletionKind.shellCommand("camerabus movies list --ids 2>/dev/null")
    static let idHelp: ArgumentHelp =
        "The movie's id ('camerabus movies' lists the ids), or a beginning that only one id has."
    static let idsHelp: ArgumentHelp =
        "The movies' ids ('camerabus movies' lists them), or beginnings that only one id has; or a rig or take."

    /// Asks about the running movies of the rig or take of that name; if there are none, about the movie of that id.
    fileprivate static func each<Answer>(
        _ typed: String, _ client: Client, _ timeout: Duration, movie: (String) async throws -> Answer,
        group: (MovieGroup) async throws -> [Answer]
    ) async throws -> [Answer] {
        let movies = try await client.movies(timeout: timeout).map(\.json)
        if movies.contains(where: { $0["rig"]?.string == typed }) { return try await group(.rig(typed)) }
        if movies.contains(where: { $0["take"]?.string == typed }) { return try await group(.take(typed)) }
        do {
            return [try await movie(try await ShortID.movie(typed, client, timeout))]
        } catch ClientError.refused(let refusal) where refusal.reason == .notRecording {
            // A rig whose movies have ended is no error either.
            let rigs = try await DeviceArgumentCheck.rigs(client, timeout: timeout)
            guard rigs.contains(where: { $0.name == typed }) else { throw ClientError.refused(refusal) }
            return try await group(.rig(typed))
        }
    }
}

extension MoviesCommand {
    struct List: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "Lists the movies that are being recorded.",
            discussion: """
                STATE is starting, recording, paused or finishing. DROPPED counts the frames that are missing in the \
                movie. LOAD is the share of time that its encoder works.

                With --json: {"movies": […]}, as movie.list returns them.
                """)

        @OptionGroup var options: GlobalOptions

        @Flag(help: "Print only the ids.")
        var ids = false

        func run(_ client: Client) async throws {
            let movies = try await client.movies(timeout: timeout)
            if ids {
                for movie in movies { try Output.line(movie.id) }
            } else if options.json {
                try Output.json(["movies": .array(movies.map(\.json))])
            } else if movies.isEmpty {
                Output.note("Nothing is being recorded.")
            } else {
                try MoviesCommand.table(movies).print()
            }
        }
    }

    static func table(_ movies: [MovieState]) -> Table {
        var table = Table("ID", "OF", "STATE", ">TIME", ">SIZE", ">FRAMES", ">DROPPED", ">LOAD", "OWNER")
        for movie in movies {
            let of = [movie.json["device"]?.string, movie.json["microphone"]?.string].compactMap(\.self)
            table.add(
                movie.id, of.joined(separator: ", "), movie.state, MovieText.time(movie.recordedDuration),
                ByteSize.text(movie.recordedFileSize), "\(movie.frames)", "\(movie.dropped)",
                "\(Int((min(max(movie.encoderLoad, 0), 1) * 100).rounded())) %",
                movie.json["detached"] == true ? "detached" : ValueText.holder(movie.json["owner"]))
            let waiting = movie.waitingFor.isEmpty ? "" : "waits for \(movie.waitingFor.joined(separator: ", ")): "
            table.note(waiting + (movie.url ?? movie.path))
        }
        return table
    }

    struct Show: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows one movie; also one of the last 64 that ended.",
            discussion: "With --json: the result of the method movie.status.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: idHelp, completion: MoviesCommand.completion) var movie: String

        func run(_ client: Client) async throws {
            let movie = try await ShortID.anyMovie(movie, client, timeout)
            let state = try await client.movie(movie, timeout: timeout)
            if options.json { return try Output.json(["movie": state.json]) }
            guard let ending = state.ending else { return try MoviesCommand.table([state]).print() }
            try MoviesCommand.tell(ending, client)
        }
    }

    struct Stop: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends movies, and prints the names of the finished files.",
            discussion: """
                The movies of a rig or take end at one moment.

                For a bus on another machine the ids are printed; 'camerabus library fetch ID' downloads a movie.

                The exit status is 0 also if a movie had ended at a limit. It is 1, with 'reason: message', if a movie \
                had ended by another cause.

                With --json: how each movie ended, as movie.stop returns it, one per line.
                """)

        @OptionGroup var options: GlobalOptions
        @Argument(help: idsHelp, completion: MoviesCommand.completion) var movie: [String]

        func run(_ client: Client) async throws {
            try await ForEachName.run(movie, of: "movies", asJSON: options.json) { movie in
                let patience = max(timeout, Client.movieTimeout)
                let endings = try await MoviesCommand.each(movie, client, timeout) {
                    try await client.stopMovie($0, timeout: patience)
                } group: {
                    try await client.stopMovies(of: $0, timeout: patience)
                }
                for ending in endings {
                    if options.json { try Output.json(ending.json) } else { try MoviesCommand.tell(ending, client) }
                }
                return endings.allSatisfy(\.isSuccess)
            }
        }
    }

    struct Pause: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Pauses movies: the following frames are left out.",
            discussion:
                "The movies of a rig or take are paused at one moment.\n\nWith --json: {\"movie\": …}, one per line.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: idsHelp, completion: MoviesCommand.completion) var movie: [String]

        func run(_ client: Client) async throws {
            try await ForEachName.run(movie, of: "movies", asJSON: options.json) { movie in
                let states = try await MoviesCommand.each(movie, client, timeout) {
                    try await client.pauseMovie($0, timeout: timeout)
                } group: {
                    try await client.pauseMovies(of: $0, timeout: timeout)
                }
                if options.json { for state in states { try Output.json(["movie": state.json]) } }
                return true
            }
        }
    }

    struct Resume: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Continues movies, in the same files.",
            discussion:
                "The movies of a rig or take continue at one moment.\n\nWith --json: {\"movie\": …}, one per line.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: idsHelp, completion: MoviesCommand.completion) var movie: [String]

        func run(_ client: Client) async throws {
            try await ForEachName.run(movie, of: "movies", asJSON: options.json) { movie in
                let states = try await MoviesCommand.each(movie, client, timeout) {
                    try await client.resumeMovie($0, timeout: timeout)
                } group: {
                    try await client.resumeMovies(of: $0, timeout: timeout)
                }
                if options.json { for state in states { try Output.json(["movie": state.json]) } }
                return true
            }
        }
    }

    /// Prints its file, or its id if this user can't read the file, to standard output; everything else to standard
    /// error.
    static func tell(_ ending: MovieEnding, _ client: Client) throws {
        let file = ending.url == nil && ending.isKept ? Download.place(of: ending.id, ending.path, client) : nil
        if let place = ending.url ?? file?.text { try Output.line(Table.printable(place)) }
        let remark = MovieText.remark(ending).map { " \($0)" } ?? ""
        Output.note(
            Table.printable(
                ending.isSuccess ? MovieText.summary(ending) + "." + remark : MovieText.failure(ending)))
        if let problem = ending.sideCarProblem { Output.note(Table.printable(problem)) }
        if let advice = file?.advice { Output.note(advice) }
    }
}
