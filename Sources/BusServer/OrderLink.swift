public import BusProtocol
public import JSON
import LinuxIO
public import Logging
public import ZeroMQ

/// An order of the coordinator, received over an ``OrderLink``.
public protocol LinkOrder {
    /// nil when this version does not know the order.
    init?(json: JSONValue)
}

/// A report to the coordinator, sent over an ``OrderLink``.
public protocol LinkReport {
    var json: JSONValue { get }
    /// It is sent once, and waits for room in the queue. Other reports are dropped: the next one contains theirs.
    var isSentOnce: Bool { get }
    /// A report queued before the first hello is held back until then. Neither the hello nor a later report contains
    /// it.
    var isKeptForHello: Bool { get }
    static func reply(order: UInt64, _ result: Result<JSONValue, BusError>) -> Self
}

/// The connection of a process to the coordinator: reports go out, orders come in. It outlives the coordinator, for a
/// while.
public final class OrderLink<Order: LinkOrder, Report: LinkReport> {
    private let loop: Loop
    private let socket: Socket
    private let monitor: Socket
    private let logger: Logger
    private let hello: (_ link: UInt64, _ inDoubt: [String]) -> Report
    /// The number of the present connection, or of the last one.
    private var link: UInt64 = 0
    private struct Waiting {
        var report: Report
        /// A further frame of its message.
        var attachment: Message?

        var bytes: Int { attachment?.count ?? 0 }
    }

    /// Reports that the coordinator must get and for which there was no room, the oldest first.
    private var backlog: [Waiting] = []
    /// Bytes of the attachments that wait there.
    private var waitingBytes = 0
    /// Reports that had to wait for room, and reports that were dropped.
    public private(set) var delayed = 0
    public private(set) var lost = 0
    /// Orders of a coordinator that has ended.
    public private(set) var stale = 0
    private var graceTimer: Loop.Token?
    /// Called when the last reports have been sent.
    private var last: (() -> Void)?
    public private(set) var isConnected = false

    /// Called when a coordinator, perhaps a new one, has connected and the hello has been sent.
    public var onConnected: (() -> Void)?
    /// Called when the coordinator has disconnected.
    public var onDisconnected: (() -> Void)?
    /// Called when no coordinator has connected for the whole grace period.
    public var onAbandoned: (() -> Void)?
    public var onOrder: ((Order) -> Void)?
    /// Returns the transactions that a new coordinator has to decide.
    public var inDoubt: (() -> [String])?

    private let grace: Int64
    private static var maximumReports: Int { 1000 }
    private static var maximumBacklog: Int { 1000 }
    private static var maximumWaitingBytes: Int { 256 << 20 }
    /// How long the last reports of a process that was never connected are kept, milliseconds.
    private static var lastPatience: Int64 { 5000 }
    private static var ordersPerTurn: Int { 32 }

    /// - Parameters:
    ///   - hello: returns the first report on the connection of that number, with the transactions in doubt.
    ///   - graceMilliseconds: how long the process runs without a coordinator.
    public init(
        _ context: Context, _ loop: Loop, path: String,
        hello: @escaping (_ link: UInt64, _ inDoubt: [String]) -> Report,
        graceMilliseconds: Int64, logger: Logger
    ) throws(ZeroMQError) {
        grace = graceMilliseconds
        self.loop = loop
        self.logger = logger
        self.hello = hello
        socket = try Socket(context, .dealer)
        // Without a connection there is no queue: no old report may precede the hello to a new coordinator.
        try socket.set(.immediate, 1)
        try socket.set(.sendHighWaterMark, Self.maximumReports)
        try socket.set(.receiveHighWaterMark, Self.maximumReports)
        try socket.setMaximumMessageBytes(BusLimits.maxMessageBytes)
        try socket.set(.reconnectInterval, 100)
        // The last reports of a failing process are waited for, but not for long.
        try socket.set(.linger, 200)
        let endpoint = "inproc://monitor/coordinator"
        try socket.startMonitor(at: endpoint, events: [.handshakeSucceeded, .disconnected])
        monitor = try Socket(context, .pair)
        try monitor.connect(endpoint)
        loop.watch(.socket(monitor)) { [weak self] in self?.readMonitor() }
        loop.watch(.socket(socket)) { [weak self] in self?.readOrders() }
        try socket.connect(RuntimeDirectory.endpoint(path))
        startGrace()
    }

    /// Sends a report to the coordinator. Reports that are sent once (``LinkReport/isSentOnce``) wait if there is no
    /// room, and some wait for the first hello (``LinkReport/isKeptForHello``).
    ///
    /// - Parameter attachment: a further frame of the message; its bytes are moved out of it.
    /// - Returns: false when no coordinator is connected, or it does not read: the report is dropped then.
    @discardableResult
    public func send(_ report: Report, attachment: Message? = nil) -> Bool {
        guard isConnected || isBeforeFirst && report.isKeptForHello else { return false }
        sendBacklog()
        let waiting = Waiting(report: report, attachment: attachment)
        if isConnected, backlog.isEmpty, sendNow(waiting) { return true }
        guard report.isSentOnce, backlog.count < Self.maximumBacklog,
            waiting.bytes <= Self.maximumWaitingBytes - waitingBytes
        else {
            lost += 1
            return false
        }
        delayed += 1
        waitingBytes += waiting.bytes
        backlog.append(waiting)
        return true
    }

    // The process that started this one needs the events from the beginning. A later coordinator gets the present state
    // by the hello.
    private var isBeforeFirst: Bool { link == 0 }

    /// Sends what waits, as far as there is room. To be called every so often.
    public func sendBacklog() {
        guard isConnected else { return }
        var sent = 0
        while sent < backlog.count {
            let bytes = backlog[sent].bytes
            guard sendNow(backlog[sent]) else { break }
            waitingBytes -= bytes
            sent += 1
        }
        if sent > 0 { backlog.removeFirst(sent) }
    }

    private func sendNow(_ waiting: Waiting) -> Bool {
        do {
            guard let attachment = waiting.attachment else { return try socket.send(waiting.report.json.serialized) }
            // Once a message has begun there is room for the rest of it.
            guard try socket.send(waiting.report.json.serialized, more: true) else { return false }
            return try socket.send(attachment)
        } catch {
            logger.error("a report can't be sent", metadata: ["error": "\(error)"])
            return false
        }
    }

    private func readMonitor() {
        while let frames = try? monitor.receive() {
            guard let event = MonitorEvent(frames) else { continue }
            switch event.kind {
            case .handshakeSucceeded: connected()
            case .disconnected: disconnected()
            default: break
            }
        }
    }

    private func connected() {
        loop.cancel(graceTimer)
        graceTimer = nil
        isConnected = true
        // The connection exists for libzmq's own thread; the socket notices it when it is polled.
        _ = socket.readiness()
        link += 1
        // Before the reports that wait for it.
        if !sendNow(Waiting(report: hello(link, inDoubt?() ?? []))) { lost += 1 }
        sendBacklog()
        onConnected?()
        sayLast()
    }

    /// Calls the body when no report waits for the first hello any more, or no coordinator has connected in time: the
    /// process can end.
    public func end(_ body: @escaping () -> Void) {
        guard isBeforeFirst, !backlog.isEmpty else { return body() }
        last = body
        loop.schedule(afterMilliseconds: Self.lastPatience) { [weak self] in self?.sayLast() }
    }

    private func sayLast() {
        let body = last
        last = nil
        body?()
    }

    private func disconnected() {
        guard isConnected else { return }
        isConnected = false
        // The reports were for a coordinator that has ended.
        backlog = []
        waitingBytes = 0
        logger.warning("the coordinator has disconnected")
        startGrace()
        onDisconnected?()
    }

    private func startGrace() {
        loop.cancel(graceTimer)
        graceTimer = loop.schedule(afterMilliseconds: grace) { [weak self] in self?.onAbandoned?() }
    }

    private func readOrders() {
        for _ in 0..<Self.ordersPerTurn {
            guard let frames = try? socket.receive(maximumFrames: 1) else { return }
            guard frames.count == 1, let json = try? JSONValue(parsing: frames[0].bytes) else {
                logger.error("a message from the coordinator is not an order and is ignored")
                continue
            }
            // libzmq may deliver messages of the broken connection when the next one exists already.
            if let meant = json["link"]?.integer, meant != Int64(clamping: link) {
                stale += 1
                continue
            }
            if let order = Order(json: json) {
                onOrder?(order)
            } else if let number = json["order"]?.integer.flatMap({ UInt64(exactly: $0) }) {
                // An unknown order of a newer coordinator gets an error reply.
                let word = json["do"]?.string ?? ""
                send(.reply(order: number, .failure(.invalidParams("do", "this process knows no order '\(word)'"))))
            }
        }
    }
}
