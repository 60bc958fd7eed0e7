import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Has questions about the capture library answered, each by a process of its own: a disk may keep one for as long as it likes, and
/// a damaged file may end it.
final class LibraryDesk {
    private struct Question {
        let request: LibrarianRequest
        /// Who asks; nil: the bus itself.
        let uid: UInt32?
        let timer: Loop.Token
        let completion: (Result<JSONValue, BusError>) -> Void
    }

    private struct Librarian {
        let output: ProcessOutput
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
    var directory: String?
    private var questions: [UInt64: Question] = [:]
    private var queue: [UInt64] = []
    private var librarians: [ObjectIdentifier: Librarian] = [:]
    private var lastNumber: UInt64 = 0
    private var whenEnded: (() -> Void)?

    /// Processes at a time. One that a disk keeps from ending counts until it has ended.
    private static let maximumProcesses = 4
    /// Questions of one user that may wait or be asked, and of all.
    private static let maximumOfUser = 16
    private static let maximum = 64
    /// From the question to its answer, milliseconds: clients wait for ten seconds unless told otherwise.
    private static let limit: Int64 = 9000
    /// The same where movies are mended, of which there may be many.
    private static let recoveryLimit: Int64 = 600_000
    /// Bytes of an answer: as many entries as can be asked for are less.
    private static let maximumBytes = 8 << 20

    init(_ loop: Loop, program: String, runtimeDirectory: RuntimeDirectory, logger: Logger) {
        self.loop = loop
        self.program = program
        self.runtimeDirectory = runtimeDirectory
        self.logger = logger
    }

    // MARK: Questions

    /// Asks; the completion is called once, perhaps at once.
    ///
    /// - Parameter uid: who asks; nil: the bus itself, which is never refused for want of room.
    func ask(
        _ request: LibrarianRequest, by uid: UInt32?, completion: @escaping (Result<JSONValue, BusError>) -> Void
    ) {
        guard directory != nil else {
            return completion(
                .failure(
                    BusError(
                        .internalError,
                        "There is no place for a capture library: name one with --state-dir, or 'directory' of [library] in camerabus.toml."
                    )))
        }
        if let uid {
            guard questions.count < Self.maximum,
                questions.values.count(where: { $0.uid == uid }) < Self.maximumOfUser
            else {
                return completion(
                    .failure(
                        BusError(
                            .limitExceeded, "Too many questions about the library wait; ask again later.",
                            ["limit": "libraryRequests", "maximum": JSONValue(Self.maximumOfUser)])))
            }
        }
        lastNumber += 1
        let number = lastNumber
        var limit = Self.limit
        if case .recover = request.action { limit = Self.recoveryLimit }
        let timer = loop.schedule(afterMilliseconds: limit) { [weak self] in self?.giveUp(number) }
        questions[number] = Question(request: request, uid: uid, timer: timer, completion: completion)
        queue.append(number)
        startWaiting()
    }

    /// Mends what nobody records any more, one movie after the other and each by a process of its own, and tells of it in the log. A movie
    /// that ends its process is taken for damaged.
    func recover() {
        guard directory != nil else { return }
        ask(LibrarianRequest(.left), by: nil) { [weak self] result in
            switch result {
            case .success(let answer):
                self?.recover(all: (answer["ids"]?.array ?? []).compactMap(\.string)[...])
            case .failure(let error):
                self?.logger.warning(
                    "the capture library can't be looked through", metadata: ["error": "\(error.message)"])
            }
        }
    }

    private func recover(all ids: ArraySlice<String>) {
        guard let id = ids.first else { return }
        recover(id, tellsOfFinished: false) { [weak self] _ in self?.recover(all: ids.dropFirst()) }
    }

    /// Mends a movie that nobody records any more, and tells of it in the log.
    ///
    /// - Parameters:
    ///   - tellsOfFinished: also of one that is whole already.
    ///   - completion: gets its entry as it is now ({id, path, state, duration, size, …}); none: it is being recorded, or can't be looked at now.
    func recover(
        _ id: String, tellsOfFinished: Bool = true, completion: @escaping ([JSONValue]) -> Void = { _ in }
    ) {
        guard directory != nil else { return completion([]) }
        ask(LibrarianRequest(.recover(id)), by: nil) { [weak self] result in
            if case .failure(Self.ended) = result, let self {
                ask(LibrarianRequest(.giveUp(id)), by: nil) { [weak self] result in
                    completion(self?.recovered(result, tellsOfFinished) ?? [])
                }
            } else {
                completion(self?.recovered(result, tellsOfFinished) ?? [])
            }
        }
    }

    private func recovered(_ result: Result<JSONValue, BusError>, _ tellsOfFinished: Bool) -> [JSONValue] {
        switch result {
        case .success(let answer):
            let entries = answer["entries"]?.array ?? []
            for entry in entries where tellsOfFinished || entry["state"]?.string != "finished" {
                logger.notice(
                    "what a recorder left is \(entry["state"]?.string ?? "unknown")",
                    metadata: ["path": "\(entry["path"]?.string ?? "")"])
            }
            for failure in answer["failed"]?.array ?? [] {
                logger.warning(
                    "what a recorder left can't be looked at now",
                    metadata: [
                        "id": "\(failure["id"]?.string ?? "")", "error": "\(failure["why"]?.string ?? "")",
                    ])
            }
            return entries
        case .failure(let error):
            // A movie that was never entered, or is deleted by now.
            if error.reason != .entryNotFound {
                logger.warning(
                    "a movie of the capture library can't be looked at", metadata: ["error": "\(error.message)"])
            }
            return []
        }
    }

    private func giveUp(_ number: UInt64) {
        for (process, librarian) in librarians where librarian.question == number {
            librarians[process]?.question = nil
            loop.cancel(librarian.reading)
            librarian.output.kill()
        }
        queue.removeAll { $0 == number }
        answer(
            number,
            .failure(BusError(.internalError, "The capture library does not answer; its disk may be stuck.")))
    }

    private func answer(_ number: UInt64, _ result: Result<JSONValue, BusError>) {
        guard let question = questions.removeValue(forKey: number) else { return }
        loop.cancel(question.timer)
        question.completion(result)
    }

    // MARK: Processes

    // In their order.
    private func startWaiting() {
        while let number = queue.first, let question = questions[number], librarians.count < Self.maximumProcesses {
            queue.removeFirst()
            start(number, question)
        }
    }

    private func start(_ number: UInt64, _ question: Question) {
        let output: ProcessOutput
        do throws(SystemError) {
            output = try ProcessOutput(
                program: program,
                arguments: [
                    "--library", directory ?? "", "--runtime-dir", runtimeDirectory.path, "--request",
                    "\(question.request.json)",
                ], limit: Self.maximumBytes)
        } catch {
            logger.error("the librarian can't be started", metadata: ["error": "\(error)"])
            return answer(number, .failure(BusError(.internalError, "The librarian can't be started: \(error).")))
        }
        let process = ObjectIdentifier(output)
        librarians[process] = Librarian(
            output: output,
            reading: loop.watch(.descriptor(output.rawValue)) { [weak self] in
                if output.read() { self?.told(process) }
            },
            ending: loop.watch(.descriptor(output.process.rawValue)) { [weak self] in self?.ended(process) },
            question: number)
    }

    /// It has said what it has to say.
    private func told(_ process: ObjectIdentifier) {
        guard let librarian = librarians[process] else { return }
        loop.cancel(librarian.reading)
        guard let number = librarian.question else { return }
        librarians[process]?.question = nil
        // Whatever it does beside that is not wanted.
        if !librarian.output.isComplete { librarian.output.kill() }
        answer(number, Self.result(librarian.output))
    }

    private static let ended = BusError(.internalError, "The librarian ended without an answer.")

    private static func result(_ output: ProcessOutput) -> Result<JSONValue, BusError> {
        if output.isComplete, let json = try? JSONValue(parsing: output.bytes) {
            if let result = json["result"] { return .success(result) }
            if let error = json["error"] { return .failure(BusError(wire: error)) }
        }
        return .failure(ended)
    }

    private func ended(_ process: ObjectIdentifier) {
        guard let librarian = librarians[process] else { return }
        // What it wrote may be read only now.
        if librarian.question != nil, librarian.output.read() { told(process) }
        loop.cancel(librarian.reading)
        loop.cancel(librarian.ending)
        librarian.output.reap()
        let left = librarians.removeValue(forKey: process)?.question
        // Somebody else has its standard output.
        if let left { answer(left, Self.result(librarian.output)) }
        if librarians.isEmpty {
            whenEnded?()
            whenEnded = nil
        }
        startWaiting()
    }

    // MARK: The end

    /// Ends all that is under way, and calls the body when it has ended, or after a second: then a disk keeps it.
    func stop(then body: @escaping () -> Void) {
        queue.removeAll()
        for number in questions.keys.sorted() {
            answer(number, .failure(BusError(.shuttingDown, "The bus is shutting down; ask again when it is back.")))
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
