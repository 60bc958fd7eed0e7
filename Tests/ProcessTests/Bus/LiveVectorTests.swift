import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// `Protocol/vectors/live-*.json` and `requests.json`, against the real bus.
    @Suite(.timeLimit(.minutes(5))) struct LiveVectors {
        @Test func `requests get the replies that the vectors say`() async throws {
            let bus = try await BusHarness(virtual: 2, microphones: nil)
            for vector in Vectors.cases("live-requests") {
                var dialogue = Dialogue(bus, vector.name)
                for step in vector.json["steps"]?.array ?? [] { try dialogue.take(step) }
                try dialogue.clear()
            }
            try await bus.stop()
        }

        @Test func `subscriptions get the publications that the vectors say`() async throws {
            let bus = try await BusHarness(virtual: 2, microphones: nil)
            for vector in Vectors.cases("live-publications") {
                if vector.name == "a prefix starts nothing" {
                    let client = try RawClient(path: bus.directory.commandSocket)
                    try await eventually {
                        try client.call("device.get", ["device": "cam1"])["device"]?["isStreaming"] == false
                    }
                }
                var dialogue = Dialogue(bus, vector.name)
                for step in vector.json["steps"]?.array ?? [] { try dialogue.take(step) }
                try dialogue.clear()
            }
            try await bus.stop()
        }

        @Test func `malformed requests get the errors that the vectors say`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            for vector in Vectors.cases("requests") where !vector.isValid {
                let reply = try client.exchange(try vector.frame())
                guard case .failure(let error) = reply.result else {
                    Issue.record("\(vector.name): was accepted")
                    continue
                }
                let expected = vector.expect["error"]
                #expect(JSONValue(error.code) == expected?["code"], "\(vector.name)")
                #expect(.string(error.reason.rawValue) == expected?["reason"], "\(vector.name)")
                #expect(reply.id == vector.expect["id"], "\(vector.name)")
            }
            try client.call("bus.ping")
            try await bus.stop()
        }
    }

    /// The clients and subscribers of one case.
    private struct Dialogue {
        private let bus: BusHarness
        private let name: String
        private var pattern = LivePattern(saved: ["nonce": .string(hexadecimal(randomBytes(8)))])
        private var clients: [String: RawClient] = [:]
        private var subscribers: [String: RawClient] = [:]
        private var subscriber: RawClient?
        /// The method of the request whose reply a client awaits.
        private var methods: [String: String] = [:]

        init(_ bus: BusHarness, _ name: String) {
            self.bus = bus
            self.name = name
        }

        mutating func take(_ step: JSONValue) throws {
            if let topics = step["subscribe"]?.array {
                try subscribe(topics.compactMap(\.string), step["socket"]?.string ?? "events")
            } else if let expected = step["expect"] {
                try expect(expected)
            } else {
                try converse(step)
            }
        }

        private mutating func converse(_ step: JSONValue) throws {
            let name = step["client"]?.string ?? "a"
            let client = try clients[name] ?? RawClient(path: bus.directory.commandSocket)
            clients[name] = client
            if let request = step["send"] {
                methods[name] = request["method"]?.string
                try client.send([[], pattern.filled(request).serialized])
            }
            guard let wanted = step["reply"], wanted != "later" else { return }
            guard !wanted.isNull else {
                // What comes first after it is the answer to something else.
                try client.send([[], Request(id: "nothing before", method: "bus.ping").serialized])
                #expect(try client.reply(within: 20).id == "nothing before", "\(self.name)")
                return
            }
            let body = try #require(try client.receive(within: 20).last)
            let reply = try JSONValue(parsing: body.bytes)
            #expect(reply["jsonrpc"] == "2.0", "\(self.name)")
            if let mismatch = pattern.mismatch(reply, wanted) { Issue.record("\(self.name): \(mismatch) in \(reply)") }
            if let result = reply["result"], let method = methods[name].flatMap({ MethodTable[$0] }) {
                #expect(method.result.validate(result) == nil, "\(self.name)")
            }
            #expect(pattern.save(step["save"], from: reply).isEmpty, "\(self.name)")
        }

        private mutating func subscribe(_ topics: [String], _ name: String) throws {
            if subscribers[name] == nil {
                let path = "\(bus.directory.path)/\(name).sock"
                subscribers[name] = try RawClient(.subscribe, path: path, topics: topics)
            } else {
                for topic in topics { try subscribers[name]?.socket.subscribe(topic) }
            }
            subscriber = subscribers[name]
        }

        private func expect(_ wanted: JSONValue) throws {
            let subscriber = try #require(subscriber)
            let deadline = MonotonicClock.now() + 20_000_000_000
            var last = "nothing"
            while MonotonicClock.now() < deadline {
                guard let frames = try? subscriber.receive(within: 1), let topic = frames.first else { continue }
                let name = JSONValue.string(String(decoding: topic.bytes, as: UTF8.self))
                guard pattern.mismatch(name, wanted["topic"] ?? .null) == nil else { continue }
                guard let header = wanted["header"] else { return }
                guard frames.count > 1 else { continue }
                let value = try JSONValue(parsing: frames[1].bytes)
                let hasPayload = frames.count > 2 && frames[2].count > 0
                let mismatch = pattern.mismatch(value, header)
                if mismatch == nil, wanted["payload"]?.bool.map({ $0 == hasPayload }) ?? true { return }
                last = mismatch ?? "a payload: \(hasPayload)"
            }
            Issue.record("\(name): no message as \(wanted); the last one had \(last)")
        }

        /// Takes back what the case has locked, for the next one.
        func clear() throws {
            let client = try RawClient(path: bus.directory.commandSocket)
            let lock = try client.call("device.takeOver", ["devices": ["cam0", "cam1"]])["lock"] ?? .null
            try client.call("device.unlock", ["lock": lock])
        }
    }
}
