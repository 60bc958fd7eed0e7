import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Runs the recorders, one process for each movie: starts them, takes over those of a coordinator before this one,
/// watches them, and talks to them over `internal/recorders.sock`.
final class RecorderSupervisor {
    private let loop: Loop
    private let server: ServerSocket
    private let program: String
    private let directory: RuntimeDirectory
    private let logger: Logger
    private var recorders: [String: RecorderHandle] = [:]
    /// Recorders of a coordinator before this one that have not said hello yet.
    private var expected: [String: RecorderHandle] = [:]
    private var listeners: [String: Listener] = [:]
    private var whenAllHaveEnded: (() -> Void)?
    private var lastCall: Loop.Token?

    /// Gets the reports of a recorder for live photos.
    struct Listener {
        /// Gets its progress.
        var onProgress: (MovieProgress) -> Void
        /// Called when its process has ended, after its last report.
        var onEnd: () -> Void
    }

    /// How often, and how far apart in milliseconds, the last words of one that has ended are listened for.
    private static let hearings = 3
    private static let hearing: Int64 = 200

    /// Of those that are started from now on.
    var logLevel: String
    /// Decides whether a recorder of a coordinator before this one may continue.
    var onAdopted: ((RecorderHandle, MovieRequest, MovieProgress) -> Bool)?
    /// Gets the progress of a movie.
    var onProgress: ((_ movie: String, MovieProgress) -> Void)?
    var onEvent: ((_ movie: String, MovieEvent) -> Void)?
    /// Whether the end of a movie was reported.
    var isFinished: ((_ movie: String) -> Bool)?
    /// Called when a recorder's process has ended, after its last report, with how in words; nil: that is not known.
    var onEnd: ((_ movie: String, _ ending: String?) -> Void)?
    /// Called when a recorder of a coordinator before this one has ended that never said hello.
    var onExpectedEnd: ((_ movie: String) -> Void)?

    init(
        _ loop: Loop, _ server: ServerSocket, program: String, directory: RuntimeDirectory, logLevel: String,
        logger: Logger
    ) {
        self.loop = loop
        self.server = server
        self.program = program
        self.directory = directory
        self.logLevel = logLevel
        self.logger = logger
        loop.watch(.socket(server.socket)) { [weak self] in self?.readReports() }
    }

    /// The recorder of that movie, as long as its process lives.
    subscript(movie: String) -> RecorderHandle? { recorders[movie] }

    /// The recorder with that pid.
    func recorder(of pid: Int32) -> RecorderHandle? { recorders.values.first { $0.pid == pid } }

    /// Whether it is a recorder of live photos, which has a listener of its own.
    func isListenedTo(_ movie: String) -> Bool { listeners[movie] != nil }

    // MARK: The processes

    /// Watches the recorders of a coordinator before this one: one that hangs says no hello, and keeps its movie from
    /// being repaired.
    func expectLeftovers() {
        for (movie, owner) in LockFile.held(in: directory.internalDirectory, ending: RuntimeDirectory.movieLockEnding) {
            guard let owner, DeviceID.isValid(movie), recorders[movie] == nil else { continue }
            let recorder = make(movie)
            expected[movie] = recorder
            recorder.expect(owner)
        }
    }

    /// Starts the recorder of a movie.
    ///
    /// - Parameter listener: gets its reports; nil: the common callbacks get them.
    func start(_ request: MovieRequest, listener: Listener? = nil) throws(SystemError) {
        let child = try ChildProcess(
            program: program, arguments: ["--movie=\(request.movie)"],
            privateArguments: [
                "--runtime-dir=\(directory.path)", "--log-level=\(logLevel)", "--request=\(request.json)",
            ], keepsDescriptors: false)
        listeners[request.movie] = listener
        let recorder = make(request.movie)
        recorders[request.movie] = recorder
        recorder.started(child)
    }

    private func make(_ movie: String) -> RecorderHandle {
        RecorderHandle(
            movie, loop, logger: logger,
            send: { [weak self] connection, order in
                (try? self?.server.socket.send(frames: [connection, order.json.serialized])) ?? false
            },
            onEnd: { [weak self] recorder in self?.ended(recorder) })
    }

    private func ended(_ recorder: RecorderHandle) {
        let movie = recorder.movie
        if expected[movie] === recorder {
            expected[movie] = nil
            File.remove(directory.movieLock(movie))
            onExpectedEnd?(movie)
        }
        guard recorders[recorder.movie] === recorder else { return recorder.close() }
        hearLastWords(of: recorder, Self.hearings)
    }

    // They may be on their way still, through libzmq's threads: sockets have their turn between any two of these.
    private func hearLastWords(of recorder: RecorderHandle, _ left: Int) {
        readReports()
        let isHeard = isListenedTo(recorder.movie) ? !recorder.isAsked : isFinished?(recorder.movie) != false
        guard left > 0, !isHeard else { return forget(recorder) }
        loop.schedule(afterMilliseconds: Self.hearing) { [weak self] in self?.hearLastWords(of: recorder, left - 1) }
    }

    private func forget(_ recorder: RecorderHandle) {
        guard recorders[recorder.movie] === recorder else { return recorder.close() }
        recorders[recorder.movie] = nil
        recorder.close()
        // No other movie has its name.
        File.remove(directory.movieLock(recorder.movie))
        if let listener = listeners.removeValue(forKey: recorder.movie) {
            listener.onEnd()
        } else {
            onEnd?(recorder.movie, recorder.ending)
        }
        tellIfAllHaveEnded()
    }

    /// Has all finish and end; the body is called when the last one has, or when that takes too long: then they go on
    /// by themselves.
    func finishAll(by deadline: Int64, then body: @escaping () -> Void) {
        whenAllHaveEnded = body
        for recorder in recorders.values { recorder.terminate() }
        lastCall = loop.schedule(at: deadline) { [weak self] in
            guard let self else { return }
            logger.error(
                "movies are not finished yet; their recorders go on", metadata: ["count": "\(recorders.count)"])
            recorders = [:]
            tellIfAllHaveEnded()
        }
        tellIfAllHaveEnded()
    }

    private func tellIfAllHaveEnded() {
        guard recorders.isEmpty, let body = whenAllHaveEnded else { return }
        whenAllHaveEnded = nil
        loop.cancel(lastCall)
        body()
    }

    // MARK: Reports

    private func readReports() {
        for _ in 0..<64 {
            guard let frames = try? server.socket.receive() else { return }
            guard frames.count == 2 || frames.count == 3, let address = frames[1].property("Peer-Address"),
                let peer = PeerAddress(zmqPeerAddress: address), peer.uid == CurrentProcess.uid,
                let json = try? JSONValue(parsing: frames[1].bytes), let report = RecorderReport(json: json),
                frames.count == 2 || report.mayHaveFile
            else {
                logger.error("a message on the recorders' socket is no report and is ignored")
                continue
            }
            received(report, by: peer.pid, Array(frames[0].bytes), file: frames.count == 3 ? frames[2] : nil)
        }
    }

    private func received(_ report: RecorderReport, by pid: Int32, _ connection: [UInt8], file: Message? = nil) {
        if case .hello(let movie, _, let link, let request, let progress) = report {
            return greeted(movie, by: pid, connection, link, request, progress)
        }
        guard let recorder = recorders.values.first(where: { $0.isConnection(connection) }) else { return }
        recorder.heard()
        switch report {
        case .hello, .alive: break
        case .state(let progress): progressed(recorder.movie, progress)
        case .event(let event): if !isListenedTo(recorder.movie) { onEvent?(recorder.movie, event) }
        case .reply(let number, let result): recorder.replied(number, result, file: file)
        }
    }

    private func progressed(_ movie: String, _ progress: MovieProgress) {
        if let listener = listeners[movie] { listener.onProgress(progress) } else { onProgress?(movie, progress) }
    }

    private func greeted(
        _ movie: String, by pid: Int32, _ connection: [UInt8], _ link: UInt64, _ request: MovieRequest,
        _ progress: MovieProgress
    ) {
        if let recorder = recorders[movie] {
            guard recorder.greeted(by: pid, connection: connection, link: link) else { return }
            progressed(movie, progress)
            return
        }
        // One that a coordinator before this one started.
        guard DeviceID.isValid(movie), request.movie == movie, whenAllHaveEnded == nil else { return }
        let recorder = expected.removeValue(forKey: movie) ?? make(movie)
        recorders[movie] = recorder
        guard recorder.greeted(by: pid, connection: connection, link: link) else {
            recorders[movie] = nil
            return
        }
        // What it holds for live photos is of no use.
        guard request.live == nil else { return recorder.order(.cancel) }
        logger.notice("a movie is taken over", metadata: ["movie": "\(movie)", LogKeys.workerPID: "\(pid)"])
        if onAdopted?(recorder, request, progress) != true { recorder.order(.cancel) }
    }
}
