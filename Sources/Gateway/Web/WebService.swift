import BusProtocol
import BusServer
import JSON
import ZeroMQ

/// Requests of the web server itself to the bus, and requests for users without a WebSocket. All go over one
/// connection, whose places the users share.
final class WebService {
    /// What the bus has answered.
    struct Answer: @unchecked Sendable {
        // The messages are its own, and nobody else touches them.
        var result: JSONValue
        var attachments: [Message]
    }

    private struct Asked {
        let request: Request
        let tell: (Result<Answer, BusError>) -> Void
        let patience: Loop.Token
    }

    private let loop: Loop
    private let caller: RemoteCaller
    private var asked: [[UInt8]: Asked] = [:]
    private var turns = TurnQueue(total: RemoteCaller.maximumPending - 1, perOwner: WebService.maximumPerOwner)
    private var lastNumber: UInt64 = 0
    /// Who waits for the answer that says whether the bus answers; nil: it is not being asked.
    private var healthWaiters: [(Bool) -> Void]?

    /// Milliseconds that an answer may take.
    static let patience: Int64 = 5000
    /// The same of what waits for a disk, which may sleep: the bus gives that up by itself a little sooner.
    static let diskPatience: Int64 = 12_000
    /// Requests of one user that the bus has at a time; further ones wait for these.
    static let maximumPerOwner = 16

    init(_ place: BusEndpoints) throws(ZeroMQError) {
        loop = place.loop
        caller = try RemoteCaller(place, maximumMessageBytes: BusLimits.maxMessageBytes, principal: nil)
        caller.onAnswer = { [weak self] envelope, frames, _ in
            guard let self, let first = frames.first, let tag = envelope.first else { return }
            let reply = Result { () throws(BusError) in
                Answer(result: try Reply(parsing: first.bytes).result.get(), attachments: Array(frames.dropFirst()))
            }
            tell(tag, reply)
        }
        caller.onLost = { [weak self] in self?.tellAll(.failure(Self.gone)) }
    }

    /// Whether the bus is there now.
    var isBusHere: Bool { caller.isConnected }

    /// Tells the body what came of it, once.
    ///
    /// - Parameters:
    ///   - principal: on whose behalf; nil: the gateway's own.
    ///   - owner: whose share of the places it takes.
    ///   - patience: milliseconds that the answer may take.
    func ask(
        _ method: String, _ params: JSONValue = [:], for principal: Request.Principal? = nil, of owner: String,
        within patience: Int64 = WebService.patience, _ tell: @escaping (Result<Answer, BusError>) -> Void
    ) {
        let tag = note(method, params, for: principal, within: patience, tell)
        turns.add(tag, of: owner)
        sendNext()
    }

    /// Tells the body whether the bus answers. One request serves all who ask while it is under way, and has a place of
    /// its own: anybody may ask this, without a token.
    func checkHealth(_ tell: @escaping (Bool) -> Void) {
        guard healthWaiters == nil else {
            healthWaiters?.append(tell)
            return
        }
        healthWaiters = [tell]
        let tag = note("bus.ping", [:], for: nil, within: Self.patience) { [weak self] result in
            let waiters = self?.healthWaiters.take() ?? []
            let isAnswering = if case .success = result { true } else { false }
            for tell in waiters { tell(isAnswering) }
        }
        send(tag)
    }

    /// Its answer is waited for from now on.
    ///
    /// - Returns: what tells it apart.
    private func note(
        _ method: String, _ params: JSONValue, for principal: Request.Principal?, within patience: Int64,
        _ tell: @escaping (Result<Answer, BusError>) -> Void
    ) -> [UInt8] {
        lastNumber += 1
        let tag = Array("\(lastNumber)".utf8)
        let request = Request(
            id: .integer(Int64(bitPattern: lastNumber)), method: method, params: params, onBehalfOf: principal)
        let end = loop.schedule(afterMilliseconds: patience) { [weak self] in
            guard let self else { return }
            caller.giveUp([tag])
            self.tell(tag, .failure(turns.isWaiting(tag) ? Self.tooMany : Self.late))
        }
        asked[tag] = Asked(request: request, tell: tell, patience: end)
        return tag
    }

    private func sendNext() { while let tag = turns.next() { send(tag) } }

    private func send(_ tag: [UInt8]) {
        guard let request = asked[tag]?.request else { return }
        if !caller.ask(request, envelope: [tag]) { tell(tag, .failure(Self.tooMany)) }
    }

    private func tell(_ tag: [UInt8], _ result: Result<Answer, BusError>) {
        guard let waiting = asked.removeValue(forKey: tag) else { return }
        loop.cancel(waiting.patience)
        turns.remove(tag)
        waiting.tell(result)
        sendNext()
    }

    private func tellAll(_ result: Result<Answer, BusError>) {
        let all = asked
        asked = [:]
        for (tag, waiting) in all {
            loop.cancel(waiting.patience)
            turns.remove(tag)
            waiting.tell(result)
        }
    }

    private static let tooMany = BusError(
        .limitExceeded, "Too many requests of this user wait for the bus. Send fewer at a time, or try again later.")

    /// What is answered in place of a bus that isn't there.
    static let gone = BusError(
        .shuttingDown, "The bus does not run, so there is no answer. Try again when it is back.")

    /// What is answered in place of a bus that is there, and has not answered in time.
    static let late = BusError(
        .internalError,
        "The bus did not answer in time. The request may still be carried out. Check the result, or try again later.")
}
