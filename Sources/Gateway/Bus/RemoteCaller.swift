import BusProtocol
import BusServer
import LinuxIO
import ZeroMQ

/// The connection to the bus that goes with one that requests come over from elsewhere: what the bus says of connections holds for each.
final class RemoteCaller {
    /// A request under way.
    private struct Pending {
        var envelope: [[UInt8]]
        var isHello: Bool
    }

    private let loop: Loop
    private let line: BusLine
    /// What is said first to each bus: who is here, lest it take what that one has from it.
    private let announcement: [UInt8]?
    private var pending: [UInt64: Pending] = [:]
    private var unsent: [[[UInt8]]] = []
    private var lastNumber: UInt64 = 0
    private var patience: Loop.Token?
    /// An answer has come; whether it is one to `bus.hello`.
    var onAnswer: ((_ envelope: [[UInt8]], _ frames: ArraySlice<Message>, _ isHello: Bool) -> Void)?
    /// The bus has gone, or isn't there: what was asked will not be answered.
    var onLost: (() -> Void)?
    /// The bus is there, or it isn't any more, or has not come while requests waited for it.
    var onPresence: ((_ isHere: Bool) -> Void)?

    /// Requests of a connection that may be under way.
    static let maximumPending = 64
    /// Milliseconds for which the bus may be away before requests are given up.
    private static let absence: Int64 = 2000

    /// - Parameters:
    ///   - maximumMessageBytes: of a frame of an answer.
    ///   - principal: for whom it is; nil: for the gateway itself.
    init(_ place: BusPlace, maximumMessageBytes: Int, principal: Request.Principal?) throws(ZeroMQError) {
        announcement = principal.map { Request(id: nil, method: "bus.ping", onBehalfOf: $0).serialized }
        loop = place.loop
        line = try BusLine(place, maximumMessageBytes: maximumMessageBytes)
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

    deinit { loop.cancel(patience) }

    var isConnected: Bool { line.isConnected }

    /// Passes a request on.
    ///
    /// - Parameter envelope: that the answer is to have.
    /// - Returns: false when too many are under way.
    func ask(_ request: Request, envelope: [[UInt8]]) -> Bool {
        guard pending.count < Self.maximumPending, unsent.count < Self.maximumPending else { return false }
        lastNumber += 1
        if !request.isNotification {
            pending[lastNumber] = Pending(envelope: envelope, isHello: request.method == "bus.hello")
        }
        unsent.append([Self.tag(lastNumber), [], request.serialized])
        sendWaiting()
        if !unsent.isEmpty, patience == nil {
            patience = loop.schedule(afterMilliseconds: Self.absence) { [weak self] in
                self?.patience = nil
                self?.lost()
                self?.onPresence?(false)
            }
        }
        return true
    }

    private func sendWaiting() {
        while let next = unsent.first, line.send(next) { unsent.removeFirst() }
        if unsent.isEmpty {
            loop.cancel(patience)
            patience = nil
        }
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
    }

    // An envelope of our own: two clients may use the same.
    private static func tag(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    private static func number(_ frame: Message) -> UInt64? {
        guard frame.count == 8 else { return nil }
        return frame.bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    }
}
