import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Delivery
import Glibc
import JSON
import LinuxIO
import Logging
import Synchronization
import Testing
import Worker
import ZeroMQ

struct TimedOut: Error, CustomStringConvertible {
    let what: String
    var description: String { "waited too long for \(what)" }
}

/// A runtime directory of its own, removed at the end.
final class Room {
    let directory: RuntimeDirectory
    private let folder: TemporaryDirectory

    init() throws {
        folder = try TemporaryDirectory()
        directory = try RuntimeDirectory(folder.path)
        try PrivateDirectory.make(directory.media, mode: 0o700)
        try PrivateDirectory.make(directory.internalDirectory, mode: 0o700)
    }
}

/// A worker on a thread of its own, and the coordinator that it reports to.
final class WorkerFixture {
    let room: Room
    /// nil while there is none.
    private(set) var present: FakeCoordinator?
    private let thread: NamedThread
    private let outcome = Outcome()
    private let device: String

    final class Outcome: Sendable {
        private let ending = Mutex<Int32?>(nil)
        var value: Int32? { ending.withLock { $0 } }
        func set(_ status: Int32) { ending.withLock { $0 = status } }
    }

    convenience init(
        _ change: (inout WorkerOptions) -> Void = { _ in }, _ source: @escaping @Sendable () -> any VideoSource
    ) throws {
        try self.init(
            change,
            running: { options, logger throws(StartError) in
                try Worker(options, source: source(), logger: logger).run()
            })
    }

    /// A microphone's, under the id mic0.
    convenience init(
        microphone source: @escaping @Sendable () -> any AudioSource, _ change: (inout WorkerOptions) -> Void = { _ in }
    ) throws {
        try self.init(
            { options in
                options.device = "mic0"
                change(&options)
            },
            running: { options, logger throws(StartError) in
                try MicrophoneWorker(options, source: source(), logger: logger).run()
            })
    }

    private init(
        _ change: (inout WorkerOptions) -> Void,
        running run: @escaping @Sendable (WorkerOptions, Logger) throws(StartError) -> ProcessEnding
    ) throws {
        room = try Room()
        let coordinator = try FakeCoordinator(room.directory)
        present = coordinator
        var options = WorkerOptions(device: "cam0", runtimeDirectory: room.directory.path)
        options.idleCloseMilliseconds = 200
        change(&options)
        device = options.device
        let (outcome, finalOptions) = (outcome, options)
        thread = try NamedThread(name: "worker") {
            do throws(StartError) {
                let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
                outcome.set(try run(finalOptions, logger).rawValue)
            } catch {
                outcome.set(error.ending.rawValue)
            }
        }
        _ = try coordinator.wait("hello") { if case .hello = $0 { true } else { false } }
    }

    convenience init(_ bench: TestBench, _ change: (inout WorkerOptions) -> Void = { _ in }) throws {
        try self.init(change) { TestSource(bench) }
    }

    deinit { if outcome.value == nil, present != nil { _ = try? stop() } }

    var coordinator: FakeCoordinator {
        get throws { try #require(present) }
    }

    /// The coordinator dies.
    func killCoordinator() { present = nil }

    /// A new coordinator comes, and is greeted.
    func startCoordinator() throws {
        let coordinator = try FakeCoordinator(room.directory)
        present = coordinator
        _ = try coordinator.wait("hello") { if case .hello = $0 { true } else { false } }
    }

    /// Ends the worker and tells its exit status.
    @discardableResult
    func stop() throws -> Int32 {
        if outcome.value == nil { try coordinator.send(.stop) }
        thread.join()
        return outcome.value ?? -1
    }

    /// Waits for the thread to end by itself.
    func waitForEnd() -> Int32 {
        thread.join()
        return outcome.value ?? -1
    }

    func subscriber(_ topics: String..., highWaterMark: Int = 100) throws -> Subscriber {
        try Subscriber(room.directory.mediaSocket(device), topics, highWaterMark: highWaterMark)
    }
}

/// The other end of `internal/workers.sock`.
final class FakeCoordinator {
    private let socket: Socket
    private let path: String
    private var connection: [UInt8] = []
    private var lastOrder: UInt64 = 0
    /// The last of each kind.
    private(set) var status: JSONValue = .null
    private(set) var description: JSONValue = .null
    private(set) var counters: JSONValue = .null
    /// What the worker's last hello said.
    private(set) var link: UInt64 = 0
    private(set) var inDoubt: [String] = []
    private(set) var statuses = 0
    /// What was told of photos.
    private(set) var progress: [Progress] = []

    struct Progress {
        var job: String
        var stage: PhotoProgress
        var members: JSONValue
        /// The further frame of its message.
        var file: [UInt8]?

        var photo: PhotoResult? { members["photo"].flatMap { try? PhotoResult(json: $0) } }
    }

    init(_ directory: RuntimeDirectory) throws {
        path = directory.workersSocket
        File.remove(path)
        socket = try Socket(try Context(), .router)
        try socket.bind(RuntimeDirectory.endpoint(path))
    }

    @discardableResult
    func send(
        _ action: WorkerOrder.Action, fence: UInt64? = nil, link: UInt64? = nil, deadline: Int64? = nil
    ) throws -> UInt64 {
        lastOrder += 1
        let order = WorkerOrder(
            number: lastOrder, fence: fence, action: action, link: link ?? self.link, deadline: deadline)
        #expect(try socket.send(frames: [connection, order.json.serialized]))
        return lastOrder
    }

    /// Gives an order and waits for its answer.
    func order(
        _ action: WorkerOrder.Action, fence: UInt64? = nil, deadline: Int64? = nil
    ) throws -> Result<JSONValue, BusError> {
        try reply(to: try send(action, fence: fence, deadline: deadline), "the reply to \(action)")
    }

    func reply(to number: UInt64, _ what: String = "the reply") throws -> Result<JSONValue, BusError> {
        let report = try wait(what) {
            if case .reply(number, _) = $0 { true } else { false }
        }
        guard case .reply(_, let result) = report else { return .success(.null) }
        return result
    }

    @discardableResult
    func waitForStatus(_ what: String, _ condition: (JSONValue) -> Bool) throws -> JSONValue {
        if status != .null, condition(status) { return status }
        _ = try wait("status: \(what), not \(status)") {
            if case .status(let value) = $0 { condition(value) } else { false }
        }
        return status
    }

    @discardableResult
    func waitForDescription() throws -> JSONValue {
        if description == .null { _ = try wait("a description") { if case .description = $0 { true } else { false } } }
        return description
    }

    func wait(
        _ what: @autoclosure () -> String, seconds: Int64 = 20, _ condition: (WorkerReport) -> Bool
    ) throws -> WorkerReport {
        let deadline = Deadline.after(seconds: Double(seconds)).time
        while true {
            while let frames = try socket.receive() {
                connection = Array(frames[0].bytes)
                let report = try #require(WorkerReport(json: try JSONValue(parsing: frames[1].bytes)))
                switch report {
                case .status(let value):
                    status = value
                    statuses += 1
                case .description(let value): description = value
                case .hello(_, _, _, let link, let inDoubt): (self.link, self.inDoubt) = (link, inDoubt)
                case .alive(let value): counters = value
                case .photo(let job, let stage, let members):
                    progress.append(
                        Progress(
                            job: job, stage: stage, members: members,
                            file: frames.count > 2 ? frames[2].withUnsafeBytes { Array($0) } : nil))
                default: break
                }
                if condition(report) { return report }
            }
            let left = (deadline - MonotonicClock.now()) / 1_000_000
            guard left > 0 else { throw TimedOut(what: what()) }
            let set = try PollSet([.socket(socket)])
            try set.wait(timeout: Int(left))
        }
    }
}

/// A frame as a subscriber gets it.
struct Delivery {
    var topic: String
    var header: JSONValue
    var payload: [UInt8]
}

/// A SUB socket whose subscriptions are in force.
final class Subscriber {
    private let socket: Socket

    init(_ path: String, _ topics: [String], highWaterMark: Int) throws {
        socket = try Socket(try Context(), .subscribe)
        try socket.set(.receiveHighWaterMark, highWaterMark)
        try socket.connect(RuntimeDirectory.endpoint(path))
        for topic in topics { try socket.subscribe(topic) }
        try confirm()
    }

    func subscribe(_ topic: String) throws {
        try socket.subscribe(topic)
        try confirm()
    }

    /// Subscribes, and answers what came before the subscription was in force for sure.
    func answers(to topics: String...) throws -> [Delivery] {
        for topic in topics { try socket.subscribe(topic) }
        var before: [Delivery] = []
        try confirm { before.append($0) }
        return before
    }

    func unsubscribe(_ topic: String) throws { try socket.unsubscribe(topic) }

    // The answer is lost like any message when frames have filled the queue: then it is asked for again.
    private func confirm(_ each: (Delivery) -> Void = { _ in }) throws {
        for _ in 0..<20 {
            let ack = "ack/\(hexadecimal(randomBytes(8)))/"
            try socket.subscribe(ack)
            defer { try? socket.unsubscribe(ack) }
            let answer = try? next("the barrier", seconds: 1) { delivery in
                each(delivery)
                return delivery.topic == ack
            }
            if answer != nil { return }
        }
        throw TimedOut(what: "the barrier")
    }

    /// The next message that fits; others are thrown away.
    func next(
        _ what: String = "a frame", seconds: Int64 = 20, where condition: (Delivery) -> Bool = { _ in true }
    ) throws -> Delivery {
        let deadline = Deadline.after(seconds: Double(seconds)).time
        while true {
            while let frames = try socket.receive() {
                guard frames.count >= 2 else { continue }
                let delivery = Delivery(
                    topic: String(decoding: frames[0].bytes, as: UTF8.self),
                    header: try JSONValue(parsing: frames[1].bytes),
                    payload: frames.count > 2 ? frames[2].withUnsafeBytes { Array($0) } : [])
                if condition(delivery) { return delivery }
                // They may come faster than they are looked at.
                if MonotonicClock.now() > deadline { break }
            }
            let left = (deadline - MonotonicClock.now()) / 1_000_000
            guard left > 0 else { throw TimedOut(what: what) }
            let set = try PollSet([.socket(socket)])
            try set.wait(timeout: Int(left))
        }
    }
}
