import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Runs the librarians: each question about the capture library is answered by a process of its own. A disk may block
/// one for any time, and a damaged file may end it.
final class LibrarianSupervisor {
    private struct Question {
        let request: LibrarianRequest
        /// The requesting user; nil: the bus itself.
        let uid: UInt32?
        /// What the librarian fills.
        let memory: FilledMemory?
        /// nil: it may wait for its turn as long as it likes.
        var timer: Loop.Token?
        let progress: ((Double) -> Void)?
        let completion: (Result<JSONValue, BusError>) -> Void

        var isJoin: Bool {
            if case .join = request.action { return true }
            return false
        }
    }

    private struct Librarian {
        let output: ProcessOutput
        let isJoin: Bool
        let reading: Loop.Token
        let ending: Loop.Token
        /// nil: it was answered, or is given up, and the process has not ended yet.
        var question: UInt64?
    }

    private let loop: Loop
    private let program: String
    private let runtimeDirectory: RuntimeDirectory
    private let logger: Logger
    /// Where the library is, absolute; nil: there is no place for one.
    private var directory: String?
    /// Whether the bus's group may read it.
    private var isShared = false
    private var questions: [UInt64: Question] = [:]
    private var queue: [UInt64] = []
    private var librarians: [ObjectIdentifier: Librarian] = [:]
    private var lastNumber: UInt64 = 0
    private var whenEnded: (() -> Void)?
    private var isStopped = false
    /// The last librarian could not be started.
    private var hasFailed = false

    /// Processes at a time. One that a disk keeps from ending counts until it has ended.
    private static let maximumProcesses = 4
    /// Questions of one user that may wait or be asked, and of all.
    static let maximumOfUser = 16
    private static let maximum = 64
    /// From the question to its answer, milliseconds: clients wait for ten seconds by default.
    private static let limit: Int64 = 9000
    /// The same where movies are mended, of which there may be many, or looked for, when the library's index may have
    /// to be made.
    private static let recoveryLimit: Int64 = 600_000
    /// The longest time without a report while a take is joined, milliseconds: progress is reported ten times a second,
    /// but at the end the disk is waited for.
    private static let joiningLimit: Int64 = 120_000
    /// Bytes of an answer. A thousand entries that this version makes have about one MiB.
    private static let maximumBytes = 8 << 20

    init(_ loop: Loop, program: String, runtimeDirectory: RuntimeDirectory, logger: Logger) {
        self.loop = loop
        self.program = program
        self.runtimeDirectory = runtimeDirectory
        self.logger = logger
    }

    /// Called when a librarian has changed the library.
    var onChange: ((LibrarianRequest.Action) -> Void)?

    /// The library is there from now on, and read by these. What is in it already is given the modes for that.
    func use(_ directory: String?, isShared: Bool) {
        guard directory != self.directory || isShared != self.isShared else { return }
        (self.directory, self.isShared) = (directory, isShared)
        guard directory != nil else { return }
        ask(LibrarianRequest(.applyAccess), by: nil) { [weak self] in self?.hasAccess($0, isShared) }
    }

    private func hasAccess(_ result: Result<JSONValue, BusError>, _ isShared: Bool) {
        let readers = isShared ? "group" : "nobody"
        switch result {
        case .success(let answer):
            if let count = answer["changed"]?.integer, count > 0 {
                logger.notice(
                    "files of the capture library are read by others than before",
                    metadata: ["files": "\(count)", "readers": "\(readers)"])
            }
            if let count = answer["foreign"]?.integer, count > 0 {
                logger.warning(
                    "files of the capture library are another user's, and as open as before; chown them to the bus's",
                    metadata: ["files": "\(count)"])
            }
        case .failure(let error):
            logger.error(
                "who may read the capture library can't be changed",
                metadata: ["readers": "\(readers)", "error": "\(error.message)"])
        }
    }

    // MARK: Questions

    /// Asks a question. The completion is called once, perhaps at once.
    ///
    /// - Parameters:
    ///   - uid: the requesting user; nil: the bus itself, for which no limit applies.
    ///   - memory: filled by the librarian with the part of a file; nil: nothing is.
    ///   - progress: gets how much is done, from 0 to 1, if that is reported.
    func ask(
        _ request: LibrarianRequest, by uid: UInt32?, filling memory: FilledMemory? = nil,
        progress: ((Double) -> Void)? = nil,
        completion: @escaping (Result<JSONValue, BusError>) -> Void
    ) {
        guard !isStopped else { return completion(.failure(Self.shuttingDown)) }
        guard directory != nil else {
            return completion(
                .failure(
                    BusError(
                        .internalError,
                        "There is no place for a capture library: name one with --state-dir, or 'directory' of "
                            + "[library] in camerabus.toml."
                    )))
        }
        if let uid {
            guard questions.count < Self.maximum,
                questions.values.count(where: { $0.uid == uid }) < Self.maximumOfUser
            else {
                return completion(.failure(Self.tooMany))
            }
        }
        lastNumber += 1
        let number = lastNumber
        questions[number] = Question(
            request: request, uid: uid, memory: memory, timer: nil, progress: progress, completion: completion)
        switch request.action {
        case .join: break
        case .recover, .left, .applyAccess, .usage: limit(number, Self.recoveryLimit)
        default: limit(number, Self.limit)
        }
        queue.append(number)
        startWaiting()
    }

    private func limit(_ number: UInt64, _ milliseconds: Int64) {
        loop.cancel(questions[number]?.timer)
        questions[number]?.timer = loop.schedule(afterMilliseconds: milliseconds) { [weak self] in
            self?.giveUp(number)
        }
    }

    /// Repairs movies whose recorders are gone, one after the other, each by a process of its own, and logs that. A
    /// movie that ends its process counts as damaged.
    func recover() {
        guard directory != nil else { return }
        ask(LibrarianRequest(.left), by: nil) { [weak self] result in
            switch result {
            case .success(let answer):
                self?.recover(all: (answer["ids"]?.array ?? []).compactMap(\.string)[...])
            case .failure(let error):
                self?.logger.warning(
                    "the capture library can't be searched", metadata: ["error": "\(error.message)"])
            }
        }
    }

    private func recover(all ids: ArraySlice<String>) {
        guard let id = ids.first else { return }
        recover(id, tellsOfFinished: false) { [weak self] _ in
            // Later: if questions fail at once, thousands of movies would nest here.
            self?.loop.schedule(at: 0) { [weak self] in self?.recover(all: ids.dropFirst()) }
        }
    }

    /// Repairs a movie whose recorder is gone, and logs that. If the librarian ends on it twice, the movie counts as
    /// damaged until the next start of a bus.
    ///
    /// - Parameters:
    ///   - tellsOfFinished: logs also a movie that is whole already.
    ///   - completion: gets its entry ({id, path, state, duration, size, …}); none: it is being recorded, or can't be
    ///       read now.
    func recover(
        _ id: String, tellsOfFinished: Bool = true, completion: @escaping ([JSONValue]) -> Void = { _ in }
    ) {
        guard directory != nil else { return completion([]) }
        recover(id, attempts: 2) { [weak self] result in
            if case .failure(Self.ended) = result, let self {
                ask(LibrarianRequest(.giveUp(id)), by: nil) { [weak self] result in
                    completion(self?.recovered(result, tellsOfFinished) ?? [])
                }
            } else {
                completion(self?.recovered(result, tellsOfFinished) ?? [])
            }
        }
    }

    // A librarian may be killed for reasons that are not the movie's.
    private func recover(_ id: String, attempts: Int, _ completion: @escaping (Result<JSONValue, BusError>) -> Void) {
        ask(LibrarianRequest(.recover(id)), by: nil) { [weak self] result in
            guard attempts > 1, case .failure(Self.ended) = result, let self else { return completion(result) }
            recover(id, attempts: attempts - 1, completion)
        }
    }

    private func recovered(_ result: Result<JSONValue, BusError>, _ tellsOfFinished: Bool) -> [JSONValue] {
        switch result {
        case .success(let answer):
            let entries = answer["entries"]?.array ?? []
            for entry in entries where tellsOfFinished || entry["state"]?.string != "finished" {
                logger.notice(
                    "a recorder left a movie that is \(entry["state"]?.string ?? "unknown")",
                    metadata: ["path": "\(entry["path"]?.string ?? "")"])
            }
            for failure in answer["failed"]?.array ?? [] {
                logger.warning(
                    "a movie that a recorder left can't be read now",
                    metadata: [
                        "id": "\(failure["id"]?.string ?? "")", "error": "\(failure["why"]?.string ?? "")",
                    ])
            }
            return entries
        case .failure(let error):
            // A movie that was never entered, or is deleted by now.
            if error.reason != .entryNotFound {
                logger.warning(
                    "a movie of the capture library can't be read", metadata: ["error": "\(error.message)"])
            }
            return []
        }
    }

    private func giveUp(_ number: UInt64) {
        for (process, librarian) in librarians where librarian.question == number {
            // It may have answered while this process was stopped.
            if librarian.output.read() { return told(process) }
            librarians[process]?.question = nil
            loop.cancel(librarian.reading)
            librarian.output.kill()
        }
        let hasBegun = !queue.contains(number)
        queue.removeAll { $0 == number }
        answer(
            number,
            .failure(
                hasBegun
                    ? BusError(.internalError, "The capture library does not answer; its disk may be stuck.")
                    : Self.tooMany))
    }

    private func answer(_ number: UInt64, _ result: Result<JSONValue, BusError>) {
        guard let question = questions.removeValue(forKey: number) else { return }
        loop.cancel(question.timer)
        if case .success = result { onChange?(question.request.action) }
        question.completion(result)
    }

    // MARK: Processes

    // In their order, but one take is joined at a time: that may take minutes, and the others have to be answered.
    private func startWaiting() {
        while librarians.count < Self.maximumProcesses,
            let index = queue.firstIndex(where: { !isJoining || !(questions[$0]?.isJoin ?? false) })
        {
            let number = queue.remove(at: index)
            guard let question = questions[number] else { continue }
            if question.isJoin { limit(number, Self.joiningLimit) }
            start(number, question)
        }
    }

    private var isJoining: Bool { librarians.values.contains(where: \.isJoin) }

    private func start(_ number: UInt64, _ question: Question) {
        let output: ProcessOutput
        do throws(SystemError) {
            output = try ProcessOutput(
                program: program, arguments: [],
                privateArguments: [
                    "--library=\(directory ?? "")", "--runtime-dir=\(runtimeDirectory.path)",
                    "--request=\(question.request.json)",
                ] + (isShared ? ["--shared"] : []), standardInput: question.memory?.rawValue, limit: Self.maximumBytes)
        } catch {
            if !hasFailed { logger.error("the librarian can't be started", metadata: ["error": "\(error)"]) }
            hasFailed = true
            return answer(number, .failure(BusError(.internalError, "The librarian can't be started: \(error).")))
        }
        hasFailed = false
        let process = ObjectIdentifier(output)
        librarians[process] = Librarian(
            output: output,
            isJoin: question.isJoin,
            reading: loop.watch(.descriptor(output.rawValue)) { [weak self] in
                if output.read() { self?.told(process) } else { self?.progressed(process) }
            },
            ending: loop.watch(.descriptor(output.process.rawValue)) { [weak self] in self?.ended(process) },
            question: number)
    }

    /// Takes the last whole line of its output. All before is dropped: hours of it would be too much.
    private func progressed(_ process: ObjectIdentifier) {
        guard let librarian = librarians[process], let number = librarian.question, librarian.isJoin else { return }
        let bytes = librarian.output.bytes
        guard let end = bytes.lastIndex(of: UInt8(ascii: "\n")),
            case .progress(let part)? = Self.report(bytes[..<end])
        else { return }
        librarian.output.forget(end + 1)
        limit(number, Self.joiningLimit)
        questions[number]?.progress?(part)
    }

    /// Its output is complete.
    private func told(_ process: ObjectIdentifier) {
        guard let librarian = librarians[process] else { return }
        loop.cancel(librarian.reading)
        guard let number = librarian.question else { return }
        librarians[process]?.question = nil
        // Anything more that it does is not needed.
        if !librarian.output.isComplete { librarian.output.kill() }
        answer(number, Self.result(librarian.output))
    }

    private static let ended = BusError(.internalError, "The librarian ended without an answer.")
    static let tooMany = BusError(
        .limitExceeded, "Too many library requests wait; try again later.",
        ["limit": "libraryRequests", "maximum": JSONValue(maximumOfUser)])

    private static func result(_ output: ProcessOutput) -> Result<JSONValue, BusError> {
        if output.bytes.count > maximumBytes {
            return .failure(
                .invalidParams("limit", "gives more than \(maximumBytes >> 20) MiB of entries; request fewer"))
        }
        if output.isComplete, case .answer(let result)? = report(output.bytes[...]) { return result }
        return .failure(ended)
    }

    /// The last line.
    private static func report(_ bytes: ArraySlice<UInt8>) -> LibrarianReport? {
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        return lines.last.flatMap { try? JSONValue(parsing: Array($0)) }.flatMap(LibrarianReport.init(json:))
    }

    private func ended(_ process: ObjectIdentifier) {
        guard let librarian = librarians[process] else { return }
        // What it wrote may be read only now.
        if librarian.question != nil, librarian.output.read() { told(process) }
        loop.cancel(librarian.reading)
        loop.cancel(librarian.ending)
        librarian.output.reap()
        let left = librarians.removeValue(forKey: process)?.question
        // Another process has its standard output.
        if let left { answer(left, Self.result(librarian.output)) }
        if librarians.isEmpty {
            whenEnded?()
            whenEnded = nil
        }
        startWaiting()
    }

    // MARK: The end

    private static let shuttingDown = BusError(
        .shuttingDown, "The bus is shutting down; try again when it is back.")

    /// Ends all that is under way, and calls the body when it has ended, or after a second: then a disk keeps it.
    func stop(then body: @escaping () -> Void) {
        isStopped = true
        queue.removeAll()
        for number in questions.keys.sorted() {
            answer(number, .failure(Self.shuttingDown))
        }
        guard !librarians.isEmpty else { return body() }
        whenEnded = body
        for (process, librarian) in librarians {
            librarians[process]?.question = nil
            librarian.output.kill()
        }
        loop.schedule(afterMilliseconds: 1000) { [weak self] in
            self?.whenEnded?()
            self?.whenEnded = nil
        }
    }
}
