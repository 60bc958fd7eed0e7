import BusProtocol
import BusServer
import JSON
import ZeroMQ

/// Requests of the web server itself to the bus, and requests for users without a WebSocket.
final class WebService {
    /// What the bus has answered.
    struct Answer: @unchecked Sendable {
        // The messages are its own, and nobody else touches them.
        var result: JSONValue
        var attachments: [Message]
    }

    private struct Asked {
        let tell: (Result<Answer, BusError>) -> Void
        let patience: Loop.Token
    }

    private let loop: Loop
    private let caller: RemoteCaller
    private var asked: [[UInt8]: Asked] = [:]
    private var lastNumber: UInt64 = 0

    /// Milliseconds that an answer may take.
    static let patience: Int64 = 5000
    /// The same of what waits for a disk, which may sleep: the bus gives that up by itself a little sooner.
    static let diskPatience: Int64 = 12_000

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
    /// - Parameter patience: milliseconds that the answer may take.
    func ask(
        _ method: String, _ params: JSONValue = [:], for principal: Request.Principal? = nil,
        within patience: Int64 = WebService.patience, _ tell: @escaping (Result<Answer, BusError>) -> Void
    ) {
        lastNumber += 1
        let tag = Array("\(lastNumber)".utf8)
        let request = Request(
            id: .integer(Int64(bitPattern: lastNumber)), method: method, params: params, onBehalfOf: principal)
        let end = loop.schedule(afterMilliseconds: patience) { [weak self] in
            guard let self else { return }
            caller.giveUp([tag])
            self.tell(tag, .failure(Self.late))
        }
        asked[tag] = Asked(tell: tell, patience: end)
        guard caller.ask(request, envelope: [tag]) else {
            return self.tell(
                tag, .failure(BusError(.limitExceeded, "The gateway has too many open requests. Try again.")))
        }
    }

    private func tell(_ tag: [UInt8], _ result: Result<Answer, BusError>) {
        guard let waiting = asked.removeValue(forKey: tag) else { return }
        loop.cancel(waiting.patience)
        waiting.tell(result)
    }

    private func tellAll(_ result: Result<Answer, BusError>) { for tag in asked.keys { tell(tag, result) } }

    /// What is answered in place of a bus that isn't there.
    static let gone = BusError(
        .shuttingDown, "The bus does not run, so there is no answer. Try again when it is back.")

    /// What is answered in place of a bus that is there, and has not answered in time.
    static let late = BusError(
        .internalError,
        "The bus did not answer in time. The request may still be carried out. Check the result, or try again later.")
}
