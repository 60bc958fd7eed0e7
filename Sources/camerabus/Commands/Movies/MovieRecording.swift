import ArgumentParser
import BusClient
import BusProtocol
import Glibc
import JSON
import LinuxIO
import Synchronization

/// The movies of one `camerabus record`, from start to end.
struct MovieRecording {
    private let command: RecordCommand
    private let client: Client
    /// What the wish of each movie, or of the rig's, begins with.
    private let subject: Subject
    private let places: MovieFileNames?
    private(set) var movies: [ClientMovie] = []
    /// Where a movie is copied to, by its id.
    private var copies: [String: String] = [:]
    private var aside = BackupFiles()

    private enum Subject {
        case devices([String])
        case rig(String, devices: [String])

        var devices: [String] {
            switch self {
            case .devices(let devices), .rig(_, let devices): devices
            }
        }
    }

    /// Reads the command, and asks the bus for a rig of that name.
    ///
    /// - Throws: ``Failure`` when a file is there already.
    init(_ command: RecordCommand, _ client: Client) async throws {
        self.command = command
        self.client = client
        let rigs = try await DeviceArgumentCheck.rigs(client, timeout: command.timeout)
        let rig = command.devices.count == 1 ? rigs.first { $0.name == command.devices[0] } : nil
        if let rig {
            subject = .rig(rig.name, devices: rig.devices)
        } else {
            let ids = try await client.devices(timeout: command.timeout).compactMap { $0["id"]?.string }
            if let refusal = DeviceArgumentCheck.refusal(ofRecording: command.devices, ids, rigs) {
                throw ClientError.refused(refusal)
            }
            subject = .devices(command.devices)
        }
        let (count, type) = (subject.devices.count, command.making.fileType)
        let name = rig == nil ? nil : command.devices[0]
        places = try command.output.map {
            try MovieFileNames($0, rig: name, fileType: type, count: count, time: MovieFileNames.time)
        }
        if !command.force, let path = try targets().first(where: MovieFileNames.exists) {
            throw Failure(status: ExitStatus.refused, description: "\(path) exists already; --force replaces it.")
        }
    }

    /// The files of all cameras, absolute; none without `-o`.
    private func targets() throws -> [String] {
        guard let places else { return [] }
        return try subject.devices.map { try MovieFileNames.resolved(places.path(of: $0)) }
    }

    // MARK: Its start

    /// Begins all movies, or none.
    mutating func start() async throws {
        do {
            do {
                if command.force {
                    for path in try targets() { try aside.move(path, with: [MovieFileNames.sideCar(of: path)]) }
                }
                try await startAll(intoLibrary: false)
            } catch ClientError.refused(let refusal) where refusal.reason == .pathNotAllowed && places != nil {
                guard !command.limits.detach else { throw ClientError.refused(refusal) }
                await giveUp()
                try await startAll(intoLibrary: true)
                Output.note(
                    "The bus may not write there. It records into its library; the movie is copied from there at the "
                        + "end."
                )
            }
        } catch {
            if Task.isCancelled, movies.isEmpty { Output.note("The recording had not begun yet.") }
            await giveUp()
            throw error
        }
        for media in Set(movies.flatMap(\.blank)).sorted() {
            Output.note(
                "You have no permission for the \(media == "audio" ? "microphone" : "camera"). The movie contains "
                    + "\(media == "audio" ? "silence" : "black") instead. Ask with 'camerabus ask \(media) --reason "
                    + "TEXT'."
            )
        }
        for movie in movies { if let problem = movie.sideCarProblem { Output.note(Table.printable(problem)) } }
        aside.note()
    }

    private mutating func startAll(intoLibrary: Bool) async throws {
        let wishes = try await self.wishes(intoLibrary: intoLibrary)
        switch subject {
        case .rig(let rig, _): movies = try await client.startMovies(ofRig: rig, wishes, timeout: patience)
        case .devices(let devices):
            let take = hexadecimal(randomBytes(8))
            let client = client
            let patience = patience
            let targets = intoLibrary ? [] : try targets()
            let requests = devices.enumerated().map { index, device in
                var wish = wishes.merging(["device": .string(device)]) { $1 }
                if devices.count > 1 { wish["take"] = .string(take) }
                if index < targets.count { wish["path"] = .string(targets[index]) }
                return wish
            }
            // At the same time, so that they begin together.
            let outcomes = await withTaskGroup(of: (Int, Result<ClientMovie, any Error>).self) { group in
                for (index, wish) in requests.enumerated() {
                    group.addTask {
                        do {
                            return (index, .success(try await client.startMovie(wish, timeout: patience)))
                        } catch {
                            return (index, .failure(error))
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
            }
            movies = outcomes.compactMap { try? $0.get() }
            for outcome in outcomes { _ = try outcome.get() }
        }
        guard intoLibrary, let places else { return }
        if let first = movies.first { try await download.check(movies.map(\.path), of: first.id) }
        for movie in movies {
            copies[movie.id] = try MovieFileNames.resolved(places.path(of: movie.devices.first ?? ""))
        }
    }

    private func wishes(intoLibrary: Bool) async throws -> [String: JSONValue] {
        let (making, limits) = (command.making, command.limits)
        var wishes: [String: JSONValue] = [:]
        if case .rig = subject, !intoLibrary, let path = places?.common {
            wishes["path"] = .string(try MovieFileNames.resolved(path))
        }
        if let url = command.to { wishes["url"] = .string(url) }
        if let microphone = command.microphone { wishes["microphone"] = .string(microphone) }
        if let type = making.type ?? (intoLibrary ? ending : nil) { wishes["fileType"] = .string(type) }
        if let codec = making.codec { wishes["codec"] = .string(codec) }
        if let fps = making.fps { wishes["frameRate"] = fps.json }
        if let fragment = making.fragment { wishes["fragmentInterval"] = .number(fragment.value * 1000) }
        if let duration = limits.duration { wishes["maxDuration"] = .number(duration.value * 1000) }
        if let size = limits.maxSize { wishes["maxFileSize"] = .integer(size.value) }
        if let free = limits.minFree { wishes["minFreeDiskSpace"] = .integer(free.value) }
        if limits.resilient { wishes["continueAfterCrash"] = true }
        if limits.detach { wishes["detached"] = true }
        if let mode = making.stabilization { wishes["stabilization"] = .string(mode) }
        if let orientation = making.orientation { wishes["orientation"] = .string(orientation) }
        if making.mirrored { wishes["mirrored"] = true }
        if making.fastFocus { wishes["smoothAutoFocus"] = false }
        if making.blank { wishes["whenDenied"] = "blank" }
        if let bits = making.bitRate {
            wishes["codec"] = "h264"
            wishes["settings"] = try await settings(bits.value)
        }
        return wishes
    }

    // Settings are complete: the rest is as the bus recommends it.
    private func settings(_ bitRate: Int64) async throws -> JSONValue {
        guard let device = subject.devices.first else { return .null }
        let recommended = try await client.recommendedMovieSettings(
            ["device": .string(device)], fileType: command.making.type ?? ending ?? "mp4", timeout: command.timeout)
        var video = recommended["video"]?.object ?? [:]
        video["bitRate"] = .integer(bitRate)
        return ["video": .object(video)]
    }

    private var ending: String? {
        guard let first = subject.devices.first, let path = places?.path(of: first) else { return nil }
        return ["mp4", "mov", "mkv"].first { path.lowercased().hasSuffix(".\($0)") }
    }

    // Restores the state before the start: deletes movies that have begun, and gives replaced files their names back.
    private mutating func giveUp() async {
        let (client, begun, timeout) = (client, movies, command.timeout)
        // Also when this task was cancelled.
        await Task { for movie in begun { await Self.discard(movie, client, timeout) } }.value
        movies = []
        copies = [:]
        aside.settle(replaced: [])
    }

    private static func discard(_ movie: ClientMovie, _ client: Client, _ timeout: Duration) async {
        let ending = try? await client.stopMovie(movie.id)
        // Its entry goes with its file, if this user may do that.
        let isDeleted = (try? await client.deleteFromLibrary(movie.id, timeout: timeout)) != nil
        guard !isDeleted, let ending, ending.isKept else { return }
        guard Download.isReadable(ending.path, client) else {
            return Output.note("The movie \(ending.id) had begun and can't be deleted from the library of the bus.")
        }
        File.remove(ending.path)
        if ending.sideCarProblem == nil { File.remove(MovieFileNames.sideCar(of: ending.path)) }
        if MovieFileNames.exists(ending.path) {
            Output.note(Table.printable("\(ending.path) had begun and can't be deleted."))
        }
    }

    private var download: Download { Download(client, timeout: command.timeout, replaces: command.force) }

    /// Downloads a movie and its side-car from the library to its path.
    private static func bring(_ ending: MovieEnding, to path: String, _ download: Download) async throws {
        do {
            try await download.fetch(ending.id, from: ending.path, to: path)
        } catch {
            Output.note(Table.printable(Download.way(to: ending.id, path)))
            throw error
        }
        let (own, copy) = (MovieFileNames.sideCar(of: ending.path), MovieFileNames.sideCar(of: path))
        // The movie is there whatever becomes of it.
        do {
            try await download.fetch(ending.id, "sideCar", from: own, to: copy)
        } catch ClientError.refused(let refusal) where refusal.reason == .entryNotFound {
            // Of what the movie has replaced.
            if download.replaces { File.remove(copy) }
        } catch {
            Output.note(Table.printable("The side-car could not be downloaded: \(error)"))
        }
    }

    // A camera may take its time to give its first picture.
    private var patience: Duration { max(command.timeout, Client.movieTimeout) }

    // MARK: Its end

    /// Shows the progress of the movies until all have ended. The first interruption finishes them.
    ///
    /// - Throws: `ExitCode` if one did not end by an interruption or at a limit.
    func followToItsEnd() async throws {
        let (client, copies, download) = (client, copies, download)
        var aside = aside
        let display = RecordingProgress(
            movies, asJSON: command.options.json, copied: Set(copies.keys), client)
        let timeout = command.timeout
        let isInterrupted = OneTimeEvent()
        let takes = Set(movies.map(\.take))
        let take = movies.count > 1 && takes.count == 1 ? movies[0].take : nil
        if command.options.json { for movie in movies { try Output.json(movie.json) } }
        // Files that ended as wanted.
        let whole = Mutex<Set<String>>([])
        defer {
            display.clear()
            aside.settle(replaced: whole.withLock(\.self))
        }
        let endings = try await Signals.handled { signal, _ in
            guard !isInterrupted.isSet else { AtomicFile.abandon(exiting: 128 + signal) }
            isInterrupted.set()
            // Its end is told where all ends are.
            Task { await Self.stop(display.running, of: take, client) }
        } _: {
            try await BusLossNotice.run(client, patience: timeout, Self.absence) {
                display.clear()
                Output.note($0)
            } _: {
                try await withThrowingTaskGroup(of: MovieEnding.self) { group in
                    for movie in movies {
                        group.addTask { try await Self.follow(movie.id, client, display, timeout, isInterrupted) }
                    }
                    var endings: [MovieEnding] = []
                    for try await ending in group {
                        if ending.isKept, MovieText.isWanted(ending, isInterrupted: isInterrupted.isSet) {
                            whole.withLock { _ = $0.insert(ending.path) }
                        }
                        if let path = copies[ending.id], ending.isKept {
                            try await Self.bring(ending, to: path, download)
                            display.clear()
                            if !command.options.json { try Output.line(Table.printable(path)) }
                        }
                        endings.append(ending)
                    }
                    return endings
                }
            }
        }
        display.clear()
        let failures = endings.filter { !MovieText.isWanted($0, isInterrupted: isInterrupted.isSet) }
        for failure in failures { Output.note(Table.printable(MovieText.failure(failure))) }
        if !failures.isEmpty { throw ExitCode(ExitStatus.refused) }
    }

    // At one moment, if they have a take that is theirs alone.
    private static func stop(_ movies: [String], of take: String?, _ client: Client) async {
        if let take, (try? await client.stopMovies(of: .take(take))) != nil { return }
        await withDiscardingTaskGroup { group in
            for id in movies { group.addTask { _ = try? await client.stopMovie(id) } }
        }
    }

    private static let absence =
        "The movie may continue. Its end is reported when the bus is back. Press Ctrl-C twice to stop waiting."

    /// - Returns: how the movie, or the last one that went on in its place, has ended.
    private static func follow(
        _ first: String, _ client: Client, _ display: RecordingProgress, _ timeout: Duration,
        _ isInterrupted: OneTimeEvent
    ) async throws -> MovieEnding {
        var id = first
        while true {
            let updates = try await client.updates(ofMovie: id, timeout: timeout)
            // From now on an interruption finds it in `display`; an earlier one may have missed it.
            if isInterrupted.isSet, id != first { Task { [id] in _ = try? await client.stopMovie(id) } }
            var last: MovieEnding?
            while let update = try await updates.next() {
                try display.show(update, of: id)
                if case .ended(let ending) = update { last = ending }
            }
            guard let last else { throw ClientError.closed }
            guard let next = last.next else { return last }
            Output.note(Table.printable(MovieText.continuation(last)))
            display.replace(id, by: next)
            id = next
        }
    }
}

/// The progress of the movies: one line of the terminal, or one line of JSON per update.
final class RecordingProgress: Sendable {
    private struct State {
        /// By the movie's id, in the order of the cameras; nil: it has ended.
        var lines: [(id: String, device: String, text: String?)]
        var isShown = false
    }

    private let state: Mutex<State>
    private let asJSON: Bool
    /// Movies of which it is not their own file that is told.
    private let copied: Set<String>
    /// Movies that had no side-car when they began, which was told.
    private let unaccompanied: Set<String>
    private let isTerminal = isatty(STDERR_FILENO) == 1

    private let client: Client

    init(_ movies: [ClientMovie], asJSON: Bool, copied: Set<String>, _ client: Client) {
        (self.asJSON, self.copied, self.client) = (asJSON, copied, client)
        unaccompanied = Set(movies.filter { $0.sideCarProblem != nil }.map(\.id))
        state = Mutex(State(lines: movies.map { ($0.id, $0.devices.first ?? "", "") }))
    }

    /// The movies that have not ended.
    var running: [String] { state.withLock { $0.lines.filter { $0.text != nil }.map(\.id) } }

    func replace(_ id: String, by next: String) {
        state.withLock { state in
            guard let index = state.lines.firstIndex(where: { $0.id == id }) else { return }
            state.lines[index].id = next
            state.lines[index].text = ""
        }
    }

    private func device(of id: String) -> String {
        state.withLock { $0.lines.first { $0.id == id }?.device ?? "" }
    }

    func show(_ update: MovieUpdates.Update, of id: String) throws {
        if asJSON { try tell(update, of: id) }
        switch update {
        case .state(let state): set(MovieText.progress(state), of: id)
        case .event("didChangeSize", let event):
            guard !asJSON, let text = MovieText.change(event, device(of: id)) else { break }
            clear()
            Output.note(Table.printable(text))
        case .event: break
        case .ended(let ending):
            set(nil, of: id)
            clear()
            guard !asJSON else { return }
            if ending.isKept, ending.url == nil, !copied.contains(id) {
                let (text, advice) = Download.place(of: id, ending.path, client)
                try Output.line(Table.printable(text))
                if let advice { Output.note(advice) }
            }
            if let url = ending.url { try Output.line(Table.printable(url)) }
            let remark = MovieText.remark(ending).map { " \($0)" } ?? ""
            Output.note(Table.printable(MovieText.summary(ending) + "." + remark))
            if let problem = ending.sideCarProblem, !unaccompanied.contains(id) {
                Output.note(Table.printable(problem))
            }
        }
    }

    /// Leaves an empty line where the progress stood.
    func clear() {
        state.withLock { state in
            if state.isShown { Output.progress("") }
            state.isShown = false
        }
    }

    private func tell(_ update: MovieUpdates.Update, of id: String) throws {
        switch update {
        case .state(let state): try Output.json(["movie": .string(id), "state": state.json])
        case .event(let name, let json): try Output.json(Self.line(name, json, id))
        case .ended(let ending): try Output.json(Self.line("didFinishRecording", ending.json, id))
        }
    }

    private static func line(_ event: String, _ json: JSONValue, _ id: String) -> JSONValue {
        var members = json.object ?? [:]
        for name in ["epoch", "sequence", "previous"] { members[name] = nil }
        members["event"] = .string(event)
        members["movie"] = .string(id)
        return .object(members)
    }

    private func set(_ text: String?, of id: String) {
        state.withLock { state in
            guard let index = state.lines.firstIndex(where: { $0.id == id }) else { return }
            state.lines[index].text = text
            guard isTerminal, !asJSON, text != nil else { return }
            let several = state.lines.count > 1
            let line = state.lines.compactMap { line in
                line.text.map { several ? "\(line.device) \($0)" : $0 }
            }.joined(separator: " | ")
            Output.progress(String(Table.printable(line).prefix(HelpText.columns - 1)))
            state.isShown = true
        }
    }
}
