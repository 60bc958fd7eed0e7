import BusProtocol
import BusServer
import Logging
import ZeroMQ

/// Tells the bus of those on other machines who have gone, or may not be here any more. What there is no bus for waits for the next.
final class Herald {
    private let line: BusLine
    /// What is to be told, of each name the last.
    private var untold: [String: Request] = [:]

    /// Names that may wait to be told.
    private static let maximum = 4096

    init(_ place: BusPlace) throws(ZeroMQError) {
        line = try BusLine(place, maximumMessageBytes: BusLimits.maxMessageBytes)
        line.onConnected = { [weak self] in self?.tellAll() }
    }

    /// All that this name has ends: its key is let in no more, or with less.
    func revoked(_ name: String) {
        tell(name, Request(id: nil, method: "bus.ping", onBehalfOf: Request.Principal(name: name, role: .nobody)))
    }

    /// Its last connection has been gone for too long.
    func left(_ principal: Request.Principal) {
        tell(principal.name, Request(id: nil, method: "bus.leave", onBehalfOf: principal))
    }

    private func tell(_ name: String, _ request: Request) {
        if untold[name] == nil, untold.count >= Self.maximum { return }
        untold[name] = request
        tellAll()
    }

    private func tellAll() {
        for (name, request) in untold where line.send([[], request.serialized]) { untold[name] = nil }
    }
}
