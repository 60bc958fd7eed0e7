import BusProtocol
import BusServer
import JSON
import Logging
import ZeroMQ

/// Reports remote users who left or were revoked to the bus. Without a bus, reports wait for the next one.
final class DepartureReporter {
    private enum News {
        /// Its key is let in no more, or with less; the body is called when the bus has answered that.
        case revoked(told: () -> Void)
        /// Its last connection has been gone for too long; with the role that it has when that is told.
        case left(() -> Request.Principal)
    }

    /// A revocation that the bus has not answered yet.
    private struct Underway {
        let name: String
        let told: () -> Void
    }

    private let line: BusConnection
    private let place: BusEndpoints
    private let logger: Logger
    /// What is to be told, by name.
    private var untold: [String: News] = [:]
    /// By the ids of their requests.
    private var underway: [Int64: Underway] = [:]
    /// What is to be called when the bus has answered which role somebody has now, likewise.
    private var changes: [Int64: () -> Void] = [:]
    private var lastNumber: Int64 = 0
    private var presences: [(_ name: String) -> Bool] = []
    private var patience: Loop.Token?

    private static let name = "camerabus-gateway"
    /// Names that may wait to be told.
    private static let maximum = 4096
    /// Milliseconds after which a bus that should be there is not.
    private static let patience: Int64 = 1000

    init(_ place: BusEndpoints, logger: Logger) throws(ZeroMQError) {
        self.place = place
        self.logger = logger
        line = try BusConnection(place, maximumMessageBytes: BusLimits.maxMessageBytes)
        line.onConnected = { [weak self] in self?.cameToBus() }
        line.onLost = { [weak self] in self?.lostBus() }
        line.onMessage = { [weak self] in self?.answered($0) }
        patience = place.loop.schedule(afterMilliseconds: Self.patience) { [weak self] in self?.missesBus() }
    }

    deinit { place.loop.cancel(patience) }

    /// Has the body asked whether somebody of that name is here.
    func whoIsHere(_ body: @escaping (_ name: String) -> Bool) { presences.append(body) }

    /// All that this name has ends: its key is let in no more, or with less.
    ///
    /// - Parameter told: called when a bus has answered that; for several of a name, that of the last.
    func revoked(_ name: String, then told: @escaping () -> Void = {}) { tell(name, .revoked(told: told)) }

    /// Its last connection has been gone for too long.
    func left(_ principal: Request.Principal) { left(principal.name) { principal } }

    /// The same.
    ///
    /// - Parameter principal: who that is by the time that it is told: with an older role it would have that again.
    func left(_ name: String, as principal: @escaping () -> Request.Principal) { tell(name, .left(principal)) }

    /// One that was let in no more as what it was is let in as this, and the bus may have heard of the older role
    /// since.
    ///
    /// - Parameter told: called when the bus has answered that, or isn't there: then it has forgotten all roles.
    func changed(_ principal: Request.Principal, then told: @escaping () -> Void = {}) {
        lastNumber += 1
        let request = Request(id: .integer(lastNumber), method: "bus.ping", onBehalfOf: principal)
        guard line.send([[], request.serialized]) else { return told() }
        changes[lastNumber] = told
    }

    private func tell(_ name: String, _ news: News) {
        note(name, news)
        tellAll()
    }

    private func note(_ name: String, _ news: News) {
        switch (untold[name], news) {
        // More ends by that than by leaving.
        case (.revoked?, .left): break
        case (_?, _): untold[name] = news
        case (nil, _): if untold.count < Self.maximum { untold[name] = news }
        }
    }

    private func tellAll() {
        for (name, news) in untold {
            guard let request = request(name, news) else {
                untold[name] = nil
                continue
            }
            guard line.send([[], request.serialized]) else { return }
            untold[name] = nil
            if case .revoked(let told) = news { underway[lastNumber] = Underway(name: name, told: told) }
        }
    }

    /// nil: it is true no more.
    private func request(_ name: String, _ news: News) -> Request? {
        switch news {
        case .revoked:
            lastNumber += 1
            return Request(
                id: .integer(lastNumber), method: "bus.ping",
                onBehalfOf: Request.Principal(name: name, role: .nobody))
        case .left(let principal):
            guard !presences.contains(where: { $0(name) }) else { return nil }
            return Request(id: nil, method: "bus.leave", onBehalfOf: principal())
        }
    }

    private func answered(_ frames: [Message]) {
        guard let body = frames.last, let reply = try? Reply(parsing: body.bytes), let number = reply.id.integer
        else { return }
        if let told = changes.removeValue(forKey: number) { return told() }
        guard let told = underway.removeValue(forKey: number) else { return }
        do throws(BusError) {
            _ = try reply.result.get()
            told.told()
        } catch {
            // Reported again with the next report, or to the next bus.
            noteAgain(told)
            logger.error(
                "the bus refused the report that a remote user left",
                metadata: ["name": "\(told.name)", "error": "\(error.message)"])
        }
    }

    // A later report replaces it.
    private func noteAgain(_ told: Underway) {
        if case .revoked? = untold[told.name] { return }
        note(told.name, .revoked(told: told.told))
    }

    private func cameToBus() {
        place.loop.cancel(patience)
        patience = nil
        logger.info("connected to the bus", metadata: ["directory": "\(place.directory.path)"])
        // The name in `device.who`: the kernel truncates program names.
        let hello = Request(id: nil, method: "bus.hello", params: ["client": .string(Self.name)])
        _ = line.send([[], hello.serialized])
        tellAll()
    }

    private func lostBus() {
        let unanswered = underway.sorted { $0.key > $1.key }
        underway = [:]
        for (_, told) in unanswered { noteAgain(told) }
        let unchanged = changes.values
        changes = [:]
        for told in unchanged { told() }
        logger.warning("the connection to the bus is lost; requests wait for the next bus")
    }

    private func missesBus() {
        patience = nil
        logger.warning(
            "no bus runs yet; requests wait for it",
            metadata: ["directory": "\(place.directory.path)"])
    }
}
