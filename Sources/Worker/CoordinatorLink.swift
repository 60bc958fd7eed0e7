import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// The connection to the coordinator: reports go out, orders come in. It outlives the coordinator, for a while.
final class CoordinatorLink {
    private let loop: Loop
    private let socket: Socket
    private let monitor: Socket
    private let logger: Logger
    private let hello: WorkerReport
    private var graceTimer: Loop.Token?
    private(set) var isConnected = false

    /// A coordinator is there, a new one perhaps; hello has been said.
    var onConnected: (() -> Void)?
    /// The coordinator has gone.
    var onDisconnected: (() -> Void)?
    /// No coordinator has come for so long that nobody will.
    var onAbandoned: (() -> Void)?
    var onOrder: ((WorkerOrder) -> Void)?

    private let grace: Int64
    private static let maximumReports = 1000
    private static let ordersPerTurn = 32

    /// - Parameter graceMilliseconds: how long the worker goes on without a coordinator.
    init(
        _ context: Context, _ loop: Loop, path: String, hello: WorkerReport, graceMilliseconds: Int64, logger: Logger
    ) throws(ZeroMQError) {
        grace = graceMilliseconds
        self.loop = loop
        self.logger = logger
        self.hello = hello
        socket = try Socket(context, .dealer)
        // Without a connection there is no queue: nothing old may stand before the hello to a new coordinator.
        try socket.set(.immediate, 1)
        try socket.set(.sendHighWaterMark, Self.maximumReports)
        try socket.set(.receiveHighWaterMark, Self.maximumReports)
        try socket.setMaximumMessageBytes(BusLimits.maxMessageBytes)
        try socket.set(.reconnectInterval, 100)
        // The last words of a process that fails are waited for, but not for long.
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

    /// Tells the coordinator something.
    ///
    /// - Returns: false when there is none, or it doesn't read.
    @discardableResult
    func send(_ report: WorkerReport) -> Bool {
        guard isConnected else { return false }
        do {
            return try socket.send(report.json.serialized)
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
        // The connection exists for libzmq's own thread; the socket learns of it when it looks.
        _ = socket.readiness()
        send(hello)
        onConnected?()
    }

    private func disconnected() {
        guard isConnected else { return }
        isConnected = false
        logger.warning("the coordinator is gone")
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
                logger.error("a message from the coordinator is no order and is ignored")
                continue
            }
            if let order = WorkerOrder(json: json) {
                onOrder?(order)
            } else if let number = json["order"]?.integer.flatMap({ UInt64(exactly: $0) }) {
                // An order of a newer coordinator: it gets an answer all the same.
                let word = json["do"]?.string ?? ""
                send(.reply(order: number, .failure(.invalidParams("do", "this worker knows no order '\(word)'"))))
            }
        }
    }
}
