import BusProtocol
import CameraBusTesting
import CaptureCore
import FrameRing
import Glibc
import JSON
import LinuxIO
import Logging
import Recorder
import Synchronization
import Testing
import ZeroMQ

/// Cameras, microphones and recorders as programs in a runtime directory of their own, and the coordinator that
/// recorders report to.
final class RecorderFixture {
    let scratch: TemporaryDirectory
    let directory: RuntimeDirectory
    private(set) var programs: [RunningProgram] = []
    private var socket: Socket?
    private let context: Context
    private var connection: [UInt8] = []
    private var lastOrder: UInt64 = 0
    private(set) var link: UInt64 = 0
    /// The last that was told.
    private(set) var progress = MovieProgress(.starting)
    private(set) var request: MovieRequest?
    private(set) var states = 0
    /// What came with answers, by the orders' numbers.
    private(set) var files: [UInt64: [UInt8]] = [:]

    init() throws {
        scratch = try TemporaryDirectory()
        directory = try RuntimeDirectory("\(scratch.path)/run")
        for path in [directory.path, directory.media, directory.internalDirectory] {
            try PrivateDirectory.make(path, mode: 0o700)
        }
        context = try Context()
        try startCoordinator()
    }

    deinit {
        for program in programs {
            program.process.send(SIGKILL)
            _ = program.child.reap()
        }
    }

    func startCoordinator() throws {
        File.remove(directory.recordersSocket)
        let socket = try Socket(context, .router)
        try socket.bind(RuntimeDirectory.endpoint(directory.recordersSocket))
        self.socket = socket
    }

    func endCoordinator() { socket = nil }

    @discardableResult
    private func start(_ program: String, _ arguments: [String]) throws -> RunningProgram {
        let running = try RunningProgram(
            program, arguments + ["--runtime-dir", directory.path, "--log-level", "error"],
            environment: ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"], scratch: scratch)
        programs.append(running)
        return running
    }

    /// - Parameter format: nil: as the virtual camera starts.
    @discardableResult
    func startCamera(
        _ device: String = "cam0", _ format: PixelFormat? = nil, width: Int = 640, height: Int = 480,
        number: Int = 0
    ) throws -> RunningProgram {
        var arguments = ["--device", device, "--virtual", "\(number)"]
        if let format {
            let configuration: JSONValue = [
                "generation": 1, "frameDuration": "1/30", "controls": [],
                "activeFormat": [
                    "pixelFormat": format.json, "width": JSONValue(width), "height": JSONValue(height),
                ],
            ]
            arguments += ["--configuration", configuration.description]
        }
        return try start("camerabus-worker", arguments)
    }

    /// Returns when the camera gives pictures: for recorders that don't wait long for it.
    func waitForPictures(_ device: String = "cam0") async throws {
        try await eventually {
            let camera = try? RingSubscription(directory.ringSocket(device), device: device, rendition: "native")
            return (try? camera?.next(.next, until: MonotonicClock.now() + 1_000_000_000)) != nil
        }
    }

    @discardableResult
    func startMicrophone(_ device: String = "mic0") throws -> RunningProgram {
        try start("camerabus-worker", ["--device", device, "--virtual-microphone", "0"])
    }

    func request(_ type: MovieFileType = .mp4, microphone: Bool = false) -> MovieRequest {
        MovieRequest(
            movie: "m1", path: "\(scratch.path)/movie.\(type.rawValue)",
            camera: MovieRequest.Device(id: "cam0", uniqueID: "virtual-0", name: "Camera"),
            microphone: microphone ? MovieRequest.Device(id: "mic0", uniqueID: "v", name: "Microphone") : nil,
            fileType: type, fragmentInterval: 500, owner: LockHolder(uid: 0, gid: 0, pid: 1, name: "test"))
    }

    func record(_ request: MovieRequest) throws -> RunningProgram {
        try start(
            "camerabus-recorder", ["--movie", request.movie, "--request", request.json.description])
    }

    /// What is there once a movie has begun.
    struct Filming {
        let request: MovieRequest
        let camera: RunningProgram
        let recorder: RunningProgram
    }

    /// Records a camera that gives Motion JPEG, and returns when so many frames are in the movie.
    func film(frames: UInt64 = 1, _ change: (inout MovieRequest) -> Void = { _ in }) throws -> Filming {
        let camera = try startCamera("cam0", .motionJPEG)
        var request = request()
        change(&request)
        let recorder = try record(request)
        try wait(for: .didStartRecording)
        try waitForState("frames") { $0.frames >= frames }
        return Filming(request: request, camera: camera, recorder: recorder)
    }

    /// A recorder on a thread of this process, for what its program has no option for.
    ///
    /// - Returns: waits for its end, and tells it.
    func recordHere(
        _ request: MovieRequest, _ change: (inout RecorderOptions) -> Void
    ) throws -> () -> RecorderEnding? {
        var options = RecorderOptions(request, runtimeDirectory: directory.path)
        change(&options)
        let final = options
        let ending = Ending()
        let thread = try NamedThread(name: "recorder") {
            let recorder = try? Recorder(final, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            ending.value.withLock { $0 = recorder?.run() }
        }
        return {
            thread.join()
            return ending.value.withLock { $0 }
        }
    }

    private final class Ending: Sendable { let value = Mutex<RecorderEnding?>(nil) }

    // MARK: The coordinator

    @discardableResult
    func wait(
        _ what: @autoclosure () -> String, by deadline: Deadline = .usual, _ condition: (RecorderReport) -> Bool
    ) throws -> RecorderReport {
        let socket = try #require(socket)
        while true {
            while let frames = try socket.receive() {
                connection = Array(frames[0].bytes)
                let report = try #require(RecorderReport(json: try JSONValue(parsing: frames[1].bytes)))
                switch report {
                case .state(let progress):
                    self.progress = progress
                    states += 1
                case .hello(_, _, let link, let request, let progress):
                    (self.link, self.request, self.progress) = (link, request, progress)
                case .reply(let order, _): if frames.count > 2 { files[order] = Array(frames[2].bytes) }
                default: break
                }
                if condition(report) { return report }
            }
            guard !deadline.hasPassed else {
                let errors = programs.map(\.standardError).joined(separator: "\n")
                throw TestingError("waited too long for \(what()); \(progress.json) \(errors)")
            }
            try PollSet([.socket(socket)]).wait(timeout: deadline.millisecondsLeft)
        }
    }

    func wait(for event: MovieEvent) throws {
        try wait(event.name) { if case .event(event) = $0 { true } else { false } }
    }

    @discardableResult
    func waitForState(_ what: String, _ condition: (MovieProgress) -> Bool) throws -> MovieProgress {
        if condition(progress) { return progress }
        try wait(what) { if case .state(let progress) = $0 { condition(progress) } else { false } }
        return progress
    }

    func waitForEnd() throws -> MovieResult {
        let report = try wait("the end") {
            if case .event(.didFinishRecording) = $0 { true } else { false }
        }
        guard case .event(.didFinishRecording(let result)) = report else { throw TestingError("\(report)") }
        return result
    }

    func order(_ action: RecorderOrder.Action) throws -> Result<JSONValue, BusError> {
        try answer(to: send(action))
    }

    func answer(to number: UInt64) throws -> Result<JSONValue, BusError> {
        let report = try wait("the answer to \(number)") { if case .reply(number, _) = $0 { true } else { false } }
        guard case .reply(_, let result) = report else { throw TestingError("\(report)") }
        return result
    }

    @discardableResult
    func send(_ action: RecorderOrder.Action) throws -> UInt64 {
        lastOrder += 1
        let order = RecorderOrder(number: lastOrder, action: action, link: link)
        guard try socket?.send(frames: [connection, order.json.serialized]) == true else {
            throw TestingError("\(action) can't be sent")
        }
        return lastOrder
    }

    func stop(_ reason: MovieEndReason = .stopped) throws -> MovieResult {
        let answer = try order(.stop(reason)).get()
        return try #require(MovieResult(json: answer))
    }

    // MARK: The file

    func run(_ program: String, _ arguments: [String]) async throws -> ProgramResult {
        try await RunningProgram(
            program, arguments, environment: ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"],
            scratch: scratch
        ).end(by: .after(seconds: 60))
    }

    /// What ffprobe tells of the tracks.
    func tracks(_ path: String) async throws -> [JSONValue] {
        let result = try await run(
            "ffprobe", ["-v", "error", "-count_packets", "-show_streams", "-of", "json", path])
        #expect(result.standardError == "")
        return try JSONValue(parsing: result.standardOutputBytes)["streams"]?.array ?? []
    }

    /// What ffmpeg complains of when it decodes all.
    func complaints(_ path: String) async throws -> String {
        // Else it would find fault with its own guess of a rate.
        let result = try await run(
            "ffmpeg", ["-v", "error", "-i", path, "-vsync", "passthrough", "-enc_time_base", "-1", "-f", "null", "-"])
        let lines = result.standardError.split(separator: "\n").filter { !$0.hasPrefix("-vsync is deprecated") }
        return lines.joined(separator: "\n") + (result.status == 0 ? "" : " status \(result.status)")
    }

    func sideCar(_ path: String) throws -> [JSONValue] {
        let text = String(decoding: try File.read(path + ".frames.jsonl", limit: 1 << 24), as: UTF8.self)
        return try text.split(separator: "\n").map { try JSONValue(parsing: String($0)) }
    }
}
