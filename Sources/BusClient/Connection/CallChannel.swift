import BusProtocol
import Glibc
import JSON
import LinuxIO
import ZeroMQ

/// Requests and their answers, over one DEALER socket. Lives on the loop's thread.
///
/// A request is only given to libzmq while the bus is connected (`ZMQ_IMMEDIATE`), so that none is carried out long
/// after its caller has given up; until then it waits here.
final class CallChannel {
    typealias Outcome = Result<Answer, ClientError>
    /// The requests that take back what was answered.
    typealias Undo = @Sendable (JSONValue) -> [(method: String, params: JSONValue)]

    struct Call: Sendable {
        /// Of the request; each once.
        var id: Int64
        var method: String
        /// The whole request.
        var bytes: [UInt8]
        var key: String?
        /// Monotonic nanoseconds.
        var deadline: Int64
        /// For messages.
        var milliseconds: Int64
        /// What takes back a success that nobody waits for any more.
        var undo: Undo?
    }

    private struct Pending {
        var call: Call
        var isSent = false
        var alarm: UInt64
        /// nil: the caller has given up.
        var finish: ((Outcome) -> Void)?
    }

    /// Of an answer, with its envelope: 100 photos of each of 16 cameras, and the JSON before them.
    static let maximumFrames = 2048
    /// Of each of these frames: what a bus attaches to an answer is less in all.
    static let maximumFrameBytes = 257 << 20

    private unowned let loop: any SocketLoop
    private let place: BusPlace
    private let greeting: [UInt8]
    private let socket: Socket
    private let monitor: Socket
    private var pending: [Int64: Pending] = [:]
    private var unsent: [Int64] = []
    private var isConnected = false
    private var connections = 0
    private var wasConnected: Bool { connections > 0 }
    private var isClosed = false
    /// What stood between us and the gateway when that was looked for last.
    private var obstacle: GatewayObstacle?
    /// How often in a row that was not to be let in.
    private var refusals = 0
    private var isExamining = false
    private var nextExamination: Int64 = 0
    private var cutWaiters: [Int64: () -> Void] = [:]

    /// The most requests that wait for an answer.
    static let maximumPending = 512
    /// The time that a connection may take before the cause of the delay is examined.
    private static let connecting = Duration.seconds(1)
    private static let examinationInterval = Duration.seconds(1)
    /// A busy gateway may refuse a client for a moment. So many refusals in a row are final.
    private static let decidingRefusals = 2

    /// - Parameter name: sent on every new connection, so that the bus recognizes the holder.
    init(_ loop: any SocketLoop, _ place: BusPlace, name: String) throws(ZeroMQError) {
        self.loop = loop
        self.place = place
        greeting = Request(id: nil, method: "bus.hello", params: ["client": .string(name)]).serialized
        socket = try Socket(loop.context, .dealer)
        try socket.set(.immediate, 1)
        try socket.setMaximumMessageBytes(Self.maximumFrameBytes)
        let events = "inproc://command-\(hexadecimal(randomBytes(8)))"
        try socket.startMonitor(at: events, events: [.handshakeSucceeded, .connectRetried, .disconnected])
        monitor = try Socket(loop.context, .pair)
        try monitor.connect(events)
        try place.connect(socket, to: .command)
        if place.isRemote { loop.schedule(at: monotonic(after: Self.connecting)) { [weak self] in self?.examine() } }
    }

    var sources: [PollSet.Source] { [.socket(socket), .socket(monitor)] }

    func start(_ call: Call, _ finish: @escaping (Outcome) -> Void) {
        guard !isClosed else { return finish(.failure(.closed)) }
        guard pending.count < Self.maximumPending else { return finish(.failure(.tooManyCalls)) }
        let id = call.id
        let alarm = loop.schedule(at: call.deadline) { [weak self] in self?.runOut(id) }
        pending[id] = Pending(call: call, alarm: alarm, finish: finish)
        unsent.append(id)
        if wasConnected { examine() }
    }

    /// Calls back when a connection ends; at once where it has, or there is none.
    ///
    /// - Parameter connection: which one; nil: that of now.
    func whenCut(_ connection: Int? = nil, _ number: Int64, _ tell: @escaping () -> Void) {
        guard isConnected, !isClosed, connection ?? connections == connections else { return tell() }
        cutWaiters[number] = tell
    }

    /// Calls that one back now.
    func stopWaitingForCut(_ number: Int64) { cutWaiters.removeValue(forKey: number)?() }

    /// The caller has gone: it is told so, the bus is asked to stop waiting, and a late success is taken back.
    func giveUp(_ id: Int64, _ error: ClientError) {
        guard let waiting = pending[id] else { return }
        loop.unschedule(waiting.alarm)
        waiting.finish?(.failure(error))
        if waiting.isSent, let key = waiting.call.key {
            notify("bus.cancel", ["key": .string(key)])
        }
        if waiting.isSent, waiting.call.undo != nil {
            // Its answer is still awaited, for as long again.
            let (more, overflow) = MonotonicClock.now().addingReportingOverflow(10_000_000_000)
            pending[id]?.finish = nil
            pending[id]?.alarm = loop.schedule(at: overflow ? .max : more) { [weak self] in self?.pending[id] = nil }
        } else {
            forget(id)
        }
    }

    func work() {
        while let frames = try? monitor.receive() {
            switch MonitorEvent(frames)?.kind {
            case .handshakeSucceeded: connected()
            case .disconnected:
                disconnected()
                endIfGone()
            case .connectRetried:
                endIfGone()
                examine()
            default: break
            }
        }
        receiveAnswers()
        sendWaiting()
    }

    func close(_ error: ClientError) {
        isClosed = true
        let waiting = pending
        pending = [:]
        unsent = []
        tellCut()
        for call in waiting.values { call.finish?(.failure(error)) }
    }

    /// Sends a request whose answer nobody wants. Lost if the bus isn't there.
    func notify(_ method: String, _ params: JSONValue) {
        guard isConnected, socket.readiness().canSend else { return }
        _ = try? socket.send(frames: [[], Request(id: nil, method: method, params: params).serialized])
    }

    private func connected() {
        isConnected = true
        obstacle = nil
        refusals = 0
        if wasConnected, socket.readiness().canSend { _ = try? socket.send(frames: [[], greeting]) }
        connections += 1
    }

    private func tellCut() {
        let waiting = cutWaiters
        cutWaiters = [:]
        for tell in waiting.values { tell() }
    }

    private func disconnected() {
        isConnected = false
        defer { tellCut() }
        // What came before the end still counts.
        receiveAnswers()
        for (id, waiting) in pending where waiting.isSent {
            waiting.finish?(.failure(.connectionLost(method: waiting.call.method)))
            forget(id)
        }
    }

    // A bus that ends in order takes its socket away; one that was killed leaves it, and may be back in a moment.
    private func endIfGone() {
        guard !isConnected, place.isGone else { return }
        for id in unsent {
            pending[id]?.finish?(.failure(.ended(directory: place.name)))
            forget(id)
        }
    }

    // Of a gateway libzmq only says that a connection has failed.
    private func examine() {
        let now = MonotonicClock.now()
        guard case .remote(let bus) = place, !isConnected, !isExamining, !unsent.isEmpty, now >= nextExamination else {
            return
        }
        isExamining = true
        loop.examine(bus) { [weak self] found in self?.examined(found) }
    }

    private func examined(_ found: GatewayObstacle?) {
        isExamining = false
        nextExamination = monotonic(after: Self.examinationInterval)
        guard !isConnected else { return }
        obstacle = found
        refusals = found?.isDoubtful == true ? refusals + 1 : 0
        guard let found, isFinal(found) else {
            // A gateway that hangs doesn't end connections, which else is the reason to look.
            if refusals > 0, !wasConnected { loop.schedule(at: nextExamination) { [weak self] in self?.examine() } }
            return
        }
        for id in unsent {
            pending[id]?.finish?(.failure(.unreachable(address: place.name, found)))
            forget(id)
        }
    }

    // A gateway that was there before may be about to be back.
    private func isFinal(_ found: GatewayObstacle) -> Bool {
        if wasConnected { return found.isAboutKeys }
        return found.isFinal || refusals >= Self.decidingRefusals
    }

    private func sendWaiting() {
        while isConnected, let id = unsent.first, let call = pending[id]?.call {
            // Reading the readiness makes libzmq look for connections and answers that it has not told of yet.
            guard socket.readiness().canSend else { return }
            guard (try? socket.send(frames: [[], call.bytes])) == true else { return }
            unsent.removeFirst()
            pending[id]?.isSent = true
        }
    }

    private func receiveAnswers() {
        _ = socket.readiness()
        while let frames = try? socket.receive(maximumFrames: Self.maximumFrames) {
            guard let start = frames.firstIndex(where: { $0.count == 0 }), frames.indices.contains(start + 1),
                let reply = try? Reply(parsing: frames[start + 1].bytes), let id = reply.id.integer,
                let waiting = pending[id]
            else { continue }
            forget(id)
            let attachments = frames[(start + 2)...].map(Payload.init)
            switch (waiting.finish, reply.result) {
            case (let finish?, .success(let result)): finish(outcome(result, attachments, of: waiting.call.method))
            case (let finish?, .failure(let error)): finish(.failure(.refused(error)))
            case (nil, .success(let result)):
                for undoing in waiting.call.undo?(result) ?? [] { notify(undoing.method, undoing.params) }
            case (nil, .failure): break
            }
        }
    }

    // What is announced and what came must not be taken for one another.
    private func outcome(_ result: JSONValue, _ attachments: [Payload], of method: String) -> Outcome {
        let announced = (result["attachments"]?.array ?? []).map { $0["bytes"]?.integer }
        guard announced == attachments.map({ Int64($0.count) }) else {
            return .failure(
                .unreadable(
                    "The answer of the bus to \(method) is invalid: its attachments differ from the announced ones."))
        }
        return .success(Answer(result: result, attachments: attachments, connection: connections))
    }

    private func runOut(_ id: Int64) {
        guard let waiting = pending[id] else { return }
        // A socket that takes connections and doesn't go on from there is of a bus that is stopped, or that lets us
        // wait.
        if place.isRemote, !waiting.isSent, !isConnected {
            giveUp(id, .unreachable(address: place.name, obstacle ?? .noAnswer))
        } else if place.isRemote, waiting.isSent, waiting.call.method == "bus.hello" {
            giveUp(id, .unreachable(address: place.name, .noReply))
        } else if waiting.isSent || isConnected || place.isLive {
            giveUp(id, .timedOut(method: waiting.call.method, milliseconds: waiting.call.milliseconds))
        } else {
            let place = ClientError.Place(directory: self.place.name, why: self.place.absence)
            giveUp(id, .noBus(lookedAt: [place]))
        }
    }

    private func forget(_ id: Int64) {
        if let waiting = pending.removeValue(forKey: id) {
            loop.unschedule(waiting.alarm)
            if !waiting.isSent { unsent.removeAll { $0 == id } }
        }
    }
}
