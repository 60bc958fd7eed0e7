import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// What the bus says of itself.
    @Suite(.timeLimit(.minutes(5))) struct State {
        @Test func `a subscriber is told the present, then each change in order, without a hole`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket)
            try events.socket.subscribe("state/device/cam0/")
            let now = try message(events)
            #expect(now.topic == "state/device/cam0/")
            #expect(now.json["value"]?["id"] == "cam0")
            let client = try RawClient(path: bus.directory.commandSocket)
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let locked = try next(events, after: now.json)
            #expect(locked["value"]?["lock"]?["fence"] == 1)
            try client.call("device.unlock", ["lock": lock])
            var last = locked
            repeat { last = try next(events, after: last) } while last["value"]?["lock"] != .null
            let snapshot = try client.call("bus.snapshot", ["prefix": "state/device/"])
            #expect(snapshot["epoch"] == last["epoch"])
            #expect(snapshot["state"]?["state/device/cam0/"]?["lock"] == .null)
            #expect(snapshot["state"]?["state/bus/"] == nil)
            try await bus.stop()
        }

        @Test func `the welcome, the barrier and the heartbeat come`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket)
            try events.socket.subscribe("welcome/")
            try events.socket.subscribe("ack/a-1/")
            try events.socket.subscribe("heartbeat/")
            var topics: Set<String> = []
            while topics.count < 3 { topics.insert(try message(events).topic) }
            #expect(topics == ["welcome/", "ack/a-1/", "heartbeat/"])
            let beat = try message(events).json
            #expect(beat["epoch"]?.string?.isEmpty == false)
            #expect(beat["latest"]?.object != nil)
            #expect(beat["monotonic"]?.integer ?? 0 <= MonotonicClock.now())
            try await bus.stop()
        }

        @Test func `every method that is published is served, and the devices have the published shape`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try client.call("bus.methods") == MethodTable.json)
            for method in MethodTable.all where method.name != "bus.shutdown" {
                let refusal = try client.refusal(method.name, ["noSuchMember": 1])
                #expect(refusal?.reason == .invalidParams, "\(method.name)")
            }
            for (name, params) in [
                ("bus.hello", ["client": "test"]), ("bus.snapshot", [:]), ("bus.metrics", [:]), ("device.list", [:]),
                ("device.get", ["device": "cam0"]), ("device.formats", ["device": "cam1"]),
                ("device.controls", ["device": "cam0"]),
            ] as [(String, JSONValue)] {
                let result = try client.call(name, params)
                #expect(MethodTable[name]?.result.validate(result) == nil, "\(name)")
            }
            #expect(try client.refusal("device.get", ["device": "cam9"])?.reason == .deviceNotFound)
            #expect(try client.refusal("bus.hello", ["client": "x", "version": 2])?.data["supported"] == [1])
            try await bus.stop()
        }

        private func message(_ client: RawClient) throws -> (topic: String, json: JSONValue) {
            let frames = try client.receive()
            let topic = String(decoding: try #require(frames.first).bytes, as: UTF8.self)
            return (topic, frames.count > 1 ? try JSONValue(parsing: frames[1].bytes) : .null)
        }

        /// The next message that is newer, which must follow the one before.
        private func next(_ client: RawClient, after last: JSONValue) throws -> JSONValue {
            while true {
                let json = try message(client).json
                guard let sequence = json["sequence"]?.integer, let before = last["sequence"]?.integer else {
                    throw RawClient.TimedOut()
                }
                if sequence <= before { continue }
                #expect(json["previous"]?.integer == before)
                return json
            }
        }
    }
}
