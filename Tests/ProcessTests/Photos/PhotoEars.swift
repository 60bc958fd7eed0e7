import BusProtocol
import CameraBusTesting
import JSON
import Testing
import ZeroMQ

/// Hears of all photos, from its making on.
struct PhotoEars {
    static let stages = [
        "willBeginCapture", "willCapturePhoto", "didCapturePhoto", "didFinishProcessingPhoto", "didFinishCapture",
    ]

    private let events: RawClient

    init(_ bus: BusHarness) throws {
        events = try RawClient(.subscribe, path: bus.directory.eventsSocket, topics: ["welcome/"])
        _ = try events.receive()
        for topic in ["event/photo/", "ack/photos/"] { try events.socket.subscribe(topic) }
        while try Self.read(events.receive()).topic != "ack/photos/" {}
    }

    private static func read(_ message: [Message]) throws -> (topic: String, body: JSONValue) {
        let topic = String(decoding: try #require(message.first).bytes, as: UTF8.self)
        return (topic, try JSONValue(parsing: try #require(message.last).bytes))
    }

    /// The next event of any photo: its uniqueID and the event.
    func next() throws -> (id: String, body: JSONValue) {
        let (topic, body) = try Self.read(events.receive(within: 20))
        let parts = topic.split(separator: "/")
        return (parts.count == 3 ? String(parts[2]) : "", body)
    }

    /// Goes on with the next event of that name of that photo.
    @discardableResult
    func next(_ event: String, of id: String) throws -> JSONValue {
        while true {
            let (photo, body) = try next()
            if photo == id, body["event"]?.string == event { return body }
        }
    }

    /// All events of these photos, by photo, until each has had its last.
    func all(of ids: some Collection<String>) throws -> [String: [JSONValue]] {
        var (left, heard) = (Set(ids), [String: [JSONValue]]())
        while !left.isEmpty {
            let (id, body) = try next()
            heard[id, default: []].append(body)
            if body["event"] == "didFinishCapture" { left.remove(id) }
        }
        return heard
    }

    static func names(_ events: [JSONValue]?) -> [String] { (events ?? []).compactMap { $0["event"]?.string } }
}
