import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// The coordinator's side of a recorder: its process, its reports and its orders.
///
/// It is started once. What is to follow when it has died, ``MovieRegistry`` decides.
final class RecorderHandle {
    private struct Order {
        let action: RecorderOrder.Action
        let completion: Completion
        let timer: Loop.Token
    }

    /// Gets the reply, with the file that goes with it.
    typealias Completion = (Result<JSONValue, BusError>, _ file: Message?) -> Void

    let movie: String
    private let loop: Loop
    private let logger: Logger
    private let send: (_ connection: [UInt8], _ order: RecorderOrder) -> Bool
    /// Called when the process has ended.
    private let onEnd: (RecorderHandle) -> Void

    /// Our child; nil: one that a coordinator before this one started.
    private var child: ChildProcess?
    private var process: ProcessDescriptor?
    /// Of one that has ended.
    private var endedPID: Int32?
    /// How our child has ended, in words.
    private(set) var ending: String?
    private var token: Loop.Token?
    /// A signal that can't be ignored ends a recorder whose loop hangs. What may take long, the disk, it leaves to a
    /// thread of its own.
    private lazy var watcher = HangWatcher(loop) { [weak self] in
        self?.pid
    } onSlow: { [weak self] hold, seconds in
        self?.logger.warning(
            "recorder has not reported for \(seconds) s: \(hold.rawValue)",
            metadata: [LogKeys.workerPID: "\(self?.pid ?? 0)"])
    } onHang: { [weak self] in
        guard let self else { return }
        logger.error("recorder is silent and is killed", metadata: [LogKeys.workerPID: "\(pid ?? 0)"])
        kill()
    }
    private var connection: [UInt8]?
    /// The number that the recorder gave the connection.
    private var link: UInt64 = 0
    private var orders: [UInt64: Order] = [:]
    private var lastOrder: UInt64 = 0
    /// Given before it has said hello, and ends that could not be sent.
    private var early: [(action: RecorderOrder.Action, completion: Completion)] = []

    private static let maximumOrders = 64
    /// How long pausing may take, and closing a file, which waits for the disk; milliseconds.
    fileprivate static let patience: Int64 = 10_000
    fileprivate static let longest: Int64 = 120_000
    /// A live photo's movie comes to its end first, and its past is encoded when it is taken.
    fileprivate static let livePatience: Int64 = 30_000

    init(
        _ movie: String, _ loop: Loop, logger: Logger,
        send: @escaping (_ connection: [UInt8], _ order: RecorderOrder) -> Bool,
        onEnd: @escaping (RecorderHandle) -> Void
    ) {
        self.movie = movie
        self.loop = loop
        self.send = send
        self.onEnd = onEnd
        var logger = logger
        logger[metadataKey: "movie"] = "\(movie)"
        self.logger = logger
    }

    var pid: Int32? { process?.pid }
    var isGone: Bool { process == nil }
    /// An order waits for its reply.
    var isAsked: Bool { !orders.isEmpty }

    // MARK: The process

    func started(_ child: ChildProcess) {
        self.child = child
        watch(child.process)
        watcher.begin(isLoading: true)
        logger.debug("recorder started", metadata: [LogKeys.workerPID: "\(child.process.pid)"])
    }

    /// A coordinator before this one has started it, and it is to say hello.
    func expect(_ process: ProcessDescriptor) {
        watch(process)
        watcher.begin()
    }

    private func watch(_ process: ProcessDescriptor) {
        self.process = process
        token = loop.watch(.descriptor(process.rawValue)) { [weak self] in self?.ended() }
    }

    private func ended() {
        if let child {
            guard let ending = child.reap() else { return }
            self.ending = Self.words(ending)
            logger.log(
                level: ending == .exited(0) ? .debug : .warning, "recorder ended", metadata: ["ending": "\(ending)"])
        }
        loop.cancel(token)
        watcher.end()
        endedPID = process?.pid
        (child, process, token) = (nil, nil, nil)
        onEnd(self)
    }

    // A program that finds no memory can't say so any more.
    private static func words(_ ending: ChildProcess.Ending) -> String {
        guard case .signalled(let signal) = ending, [SIGILL, SIGTRAP, SIGABRT, SIGKILL, SIGSEGV].contains(signal) else {
            return "\(ending); the log of the bus shows the cause"
        }
        return "\(ending), as for lack of memory"
    }

    /// No report comes from it any more.
    func close() {
        connection = nil
        failOrders()
    }

    private func failOrders() {
        let failed = orders.values.map(\.completion) + early.map(\.completion)
        for order in orders.values { loop.cancel(order.timer) }
        (orders, early) = ([:], [])
        for completion in failed { completion(.failure(crashed), nil) }
    }

    private var crashed: BusError {
        BusError(.workerCrashed, "The recorder of the movie \(movie) has ended.", ["movie": .string(movie)])
    }

    /// Orders it to finish, and to end.
    func terminate() { process?.send(15) }

    private func kill() { process?.send(9) }

    // MARK: What it says

    /// It has said hello, whoever started it.
    ///
    /// - Returns: false: it has ended since, and not just now.
    func greeted(by pid: Int32, connection: [UInt8], link: UInt64) -> Bool {
        if process == nil, endedPID == pid {
            // One that could not begin may end before its hello is read. What it has said since is heard still.
            (self.connection, self.link) = (connection, link)
            return true
        }
        if process == nil {
            guard let opened = try? ProcessDescriptor(pid: pid) else { return false }
            watch(opened)
        }
        guard process?.pid == pid else { return false }
        // What was asked over an earlier connection is not answered any more, and may never have come; an end has to.
        if self.connection != nil {
            let ends = takeEnds()
            failOrders()
            early = ends + early
        }
        self.connection = connection
        self.link = link
        watcher.begin()
        sendEarly()
        return true
    }

    private func takeEnds() -> [(action: RecorderOrder.Action, completion: Completion)] {
        let sent = orders.filter { $0.value.action.isEnd }.sorted { $0.key < $1.key }
        let unsent = early.filter { $0.action.isEnd }
        early.removeAll { $0.action.isEnd }
        for (number, order) in sent {
            orders[number] = nil
            loop.cancel(order.timer)
        }
        return sent.map { ($0.value.action, $0.value.completion) } + unsent
    }

    private func sendEarly() {
        let waiting = early
        early = []
        for (action, completion) in waiting { order(action, withFile: completion) }
    }

    func isConnection(_ connection: [UInt8]) -> Bool { self.connection == connection }

    /// It has said something.
    func heard() {
        guard !isGone else { return }
        watcher.reported()
        if !early.isEmpty { sendEarly() }
    }

    func replied(_ number: UInt64, _ result: Result<JSONValue, BusError>, file: Message?) {
        guard let order = orders.removeValue(forKey: number) else { return }
        loop.cancel(order.timer)
        order.completion(result, file)
    }

    // MARK: Orders

    /// Gives an order, as soon as it has said hello; the completion is called once.
    ///
    /// An order to end ignores the limit of waiting orders. It is sent again until it arrives, because nobody else
    /// would repeat it.
    func order(
        _ action: RecorderOrder.Action, completion: @escaping (Result<JSONValue, BusError>) -> Void = { _ in }
    ) {
        order(action, withFile: { result, _ in completion(result) })
    }

    /// As the other, with the file that goes with the answer (``RecorderOrder/Action/live(_:)``).
    func order(_ action: RecorderOrder.Action, withFile completion: @escaping Completion) {
        guard !isGone else { return completion(.failure(crashed), nil) }
        guard action.isEnd || orders.count + early.count < Self.maximumOrders else {
            return completion(
                .failure(
                    BusError(
                        .limitExceeded, "Too many commands wait for the movie \(movie); wait for their answers.",
                        ["limit": "ordersPerMovie", "maximum": JSONValue(Self.maximumOrders)])), nil)
        }
        guard let connection else {
            early.append((action, completion))
            return
        }
        lastOrder += 1
        let number = lastOrder
        guard send(connection, RecorderOrder(number: number, action: action, link: link)) else {
            guard !action.isEnd else { return early.append((action, completion)) }
            return completion(.failure(crashed), nil)
        }
        let timer = loop.schedule(afterMilliseconds: action.patience) { [weak self] in
            guard let self, let order = orders.removeValue(forKey: number) else { return }
            order.completion(
                .failure(
                    BusError(
                        .workerCrashed, "The recorder of the movie \(movie) did not answer in time.",
                        ["movie": .string(movie)])), nil)
        }
        orders[number] = Order(action: action, completion: completion, timer: timer)
    }
}

extension RecorderOrder.Action {
    /// It ends the movie, which waits for the disk; the others don't.
    fileprivate var isEnd: Bool {
        switch self {
        case .begin, .pause, .resume, .blank, .input, .live, .dropLive, .suspend: false
        case .stop, .cancel: true
        }
    }

    /// Milliseconds.
    fileprivate var patience: Int64 {
        if case .live = self { return RecorderHandle.livePatience }
        return isEnd ? RecorderHandle.longest : RecorderHandle.patience
    }
}
