import BusProtocol
import BusServer
import LinuxIO
import ZeroMQ

/// The connection to the bus for one remote connection: the bus's rules for connections then apply to each of them.
final class RemoteCaller {
    /// A request under way.
    private struct Pending {
        var envelope: [[UInt8]]
        var isHello: Bool
        /// Its answer may take as long as it likes.
        var isLong: Bool
        /// When it went to the bus, monotonic nanoseconds; nil: it has not.
        var since: Int64?
    }

    /// What has not gone to the bus.
    private struct Unsent {
        var number: UInt64
        var frames: [[UInt8]]
    }

    private let loop: Loop
    private let line: BusConnection
    /// What is said first to each bus: who is here, lest it take what that one has from it.
    private let announcement: [UInt8]?
    /// Milliseconds after which an answer that should be there soon does not come any more.
    private let longest: Int64
    private var pending: [UInt64: Pending] = [:]
    private var unsent: [Unsent] = []
    private var lastNumber: UInt64 = 0
    private var patience: Loop.Token?
    private var look: Loop.Token?
    /// An answer has come; whether it is one to `bus.hello`.
    var onAnswer: ((_ envelope: [[UInt8]], _ frames: ArraySlice<Message>, _ isHello: Bool) -> Void)?
    /// An answer that should have come soon has not come, and is given up.
    var onGivenUp: ((_ envelope: [[UInt8]]) -> Void)?
    /// The bus has gone, or isn't there: what was asked will not be answered.
    var onLost: (() -> Void)?
    /// The bus is there, or it isn't any more, or has not come while requests waited for it.
    var onPresence: ((_ isHere: Bool) -> Void)?

    /// Requests of a connection that may be under way.
    static let maximumPending = 64
    /// Requests with a quick reply that the bus gets at a time. It has room for so many replies of a connection, and
    /// drops further ones.
    static let maximumUnanswered = 16
    /// Milliseconds for which the bus may be away before requests are given up.
    private static let absence: Int64 = 2000

    /// - Parameters:
    ///   - maximumMessageBytes: of a frame of an answer.
    ///   - principal: for whom it is; nil: for the gateway itself.
    ///   - longest: milliseconds after which an answer that should be there soon does not come any more.
    init(
        _ place: BusEndpoints, maximumMessageBytes: Int, principal: Request.Principal?, longest: Int64 = 60_000
    ) throws(ZeroMQError) {
        announcement = principal.map { Request(id: nil, method: "bus.ping", onBehalfOf: $0).serialized }
        self.longest = longest
        loop = place.loop
        line = try BusConnection(place, maximumMessageBytes: maximumMessageBytes)
        line.onConnected = { [weak self] in
            guard let self else { return }
            if let announcement { _ = line.send([[], announcement]) }
            sendWaiting()
            onPresence?(true)
        }
        line.onLost = { [weak self] in
            self?.lost()
            self?.onPresence?(false)
        }
        line.onMessage = { [weak self] in self?.answered($0) }
    }

    deinit {
        loop.cancel(patience)
        loop.cancel(look)
    }

    var isConnected: Bool { line.isConnected }

    /// Passes a request on.
    ///
    /// - Parameter envelope: that the answer is to have.
    /// - Returns: false when too many are under way.
    func ask(_ request: Request, envelope: [[UInt8]]) -> Bool {
        guard pending.count < Self.maximumPending, unsent.count < Self.maximumPending else { return false }
        lastNumber += 1
        if !request.isNotification {
            pending[lastNumber] = Pending(
                envelope: envelope, isHello: request.method == "bus.hello",
                isLong: RemoteRequest.mayTakeLong(request), since: nil)
        }
        unsent.append(Unsent(number: lastNumber, frames: [Self.tag(lastNumber), [], request.serialized]))
        sendWaiting()
        return true
    }

    /// Nobody waits for the answer with that envelope any more; what has not gone to the bus does not go there.
    func giveUp(_ envelope: [[UInt8]]) {
        for (number, asked) in pending where asked.envelope == envelope {
            pending[number] = nil
            unsent.removeAll { $0.number == number }
        }
        sendWaiting()
    }

    private func sendWaiting() {
        while let next = unsent.first, mayGo(next), line.send(next.frames) {
            unsent.removeFirst()
            pending[next.number]?.since = MonotonicClock.now()
        }
        waitForBus()
        lookLater()
    }

    /// In their order, so that nothing overtakes what was asked before it. Those that take long don't count: who waits
    /// for a lock must not keep the request from the bus that gives it back.
    private func mayGo(_ next: Unsent) -> Bool {
        guard let asked = pending[next.number], !asked.isLong else { return true }
        return pending.values.count(where: Self.isSoon) < Self.maximumUnanswered
    }

    /// Whether the bus has it, and answers soon.
    private static func isSoon(_ asked: Pending) -> Bool { asked.since != nil && !asked.isLong }

    /// Gives the bus some time to come where something could go if it were there.
    private func waitForBus() {
        guard let next = unsent.first, mayGo(next) else {
            loop.cancel(patience)
            patience = nil
            return
        }
        guard patience == nil else { return }
        patience = loop.schedule(afterMilliseconds: Self.absence) { [weak self] in
            guard let self else { return }
            patience = nil
            lost()
            onPresence?(false)
        }
    }

    /// An answer that the bus has dropped would have its place for ever.
    private func lookLater() {
        guard look == nil, pending.values.contains(where: Self.isSoon) else { return }
        look = loop.schedule(afterMilliseconds: longest) { [weak self] in
            guard let self else { return }
            look = nil
            giveUpLate()
        }
    }

    private func giveUpLate() {
        let latest = MonotonicClock.now() - longest * 1_000_000
        for (number, asked) in pending where !asked.isLong {
            guard let since = asked.since, since <= latest else { continue }
            pending[number] = nil
            onGivenUp?(asked.envelope)
        }
        sendWaiting()
    }

    private func lost() {
        guard !pending.isEmpty || !unsent.isEmpty else { return }
        pending = [:]
        unsent = []
        onLost?()
    }

    private func answered(_ frames: [Message]) {
        guard frames.count >= 3, let number = Self.number(frames[0]), let asked = pending.removeValue(forKey: number)
        else { return }
        onAnswer?(asked.envelope, frames[2...], asked.isHello)
        sendWaiting()
    }

    // An envelope of our own: two clients may use the same.
    private static func tag(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    private static func number(_ frame: Message) -> UInt64? {
        guard frame.count == 8 else { return nil }
        return frame.bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    }
}
