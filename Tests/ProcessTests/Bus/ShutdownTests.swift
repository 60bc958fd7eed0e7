import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// The orderly end, and what the bus has to say of itself.
    @Suite(.timeLimit(.minutes(5))) struct Shutdown {
        @Test func `the bus says its last word`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("device.lock", ["devices": "cam0"])
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket, topics: ["event/", "welcome/"])
            #expect(try topic(events.receive()) == "welcome/")
            try events.socket.subscribe("state/")
            try events.socket.subscribe("heartbeat/")
            try events.socket.subscribe("ack/all/")
            while try topic(events.receive()) != "ack/all/" {}
            try client.call("bus.shutdown")
            var topics: [String] = []
            while topics.last != "event/bus/" {
                let message = try events.receive()
                topics.append(try topic(message))
                guard topics.last == "event/bus/" else { continue }
                #expect(try JSONValue(parsing: try #require(message.last).bytes)["event"] == "ended")
            }
            #expect(topics.contains { $0.hasPrefix("event/lock/") })
            try await bus.waitForEnd()
            #expect(throws: RawClient.TimedOut.self) { try events.receive(within: 0.1) }
            try await bus.stop()
        }

        @Test func `a client learns at once that its bus has ended`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try await bus.connect()
            let frames = try await client.frames("cam0", "gray:160x90")
            _ = try await frames.next()
            let watching = try bus.start("camerabus", ["watch", "state/lock"])
            let locking = try bus.start("camerabus", ["lock", "cam0"])
            // It is watched that the lock is there.
            try await eventually { watching.standardOutput.contains("state/lock/") }
            kill(bus.pid, SIGTERM)
            let ended = ClientError.ended(directory: bus.directory.path)
            await #expect(throws: ended) { while true { _ = try await frames.next() } }
            let watched = try await watching.end()
            #expect(watched.status == 3 && watched.standardError.contains("has ended"), "\(watched)")
            #expect(try await locking.end().status != 0)
            try await bus.waitForEnd()
            await #expect(throws: ended) { try await client.call("bus.ping", timeout: .seconds(50)) }
            try await bus.stop()
        }

        @Test func `what is wrong with the set-up is told once, in state and in status`() async throws {
            let bus = try await BusHarness(
                virtual: nil, configuration: "[devices]\nhardware = false\n[aliases]\nfront = \"nobody-7\"\n")
            let client = try RawClient(path: bus.directory.commandSocket)
            func problems() throws -> [JSONValue] {
                let state = try client.call("bus.snapshot", ["prefix": "state/bus/"])["state"]?["state/bus/"]
                return try #require(state?["problems"]?.array).compactMap { $0["reason"] }
            }
            #expect(try problems() == ["noDevices", "aliasUnknown"])
            for text in ["virtual = 2", "nobody-7"] { #expect(bus.log.contains(text), "\(bus.log)") }
            let status = try await bus.run("camerabus", ["status"])
            #expect(status.standardOutput.contains("! aliases.front: no device with the uniqueID 'nobody-7'"))
            try bus.write(
                "[devices]\nhardware = false\nvirtual = 2\n[aliases]\nfront = \"nobody-7\"\ncam0 = \"virtual-1\"\n",
                to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually { try problems() == ["aliasUnknown", "idTaken"] }
            #expect(bus.log.contains("virtual-0 should be 'cam0'"))
            #expect(bus.log.split(separator: "nobody-7").count == 2)
            try await bus.stop()
        }

        @Test func `the log level follows SIGHUP, and a lock's begin is logged`() async throws {
            let devices = "[devices]\nhardware = false\nvirtual = 1\n"
            let bus = try await BusHarness(virtual: nil, configuration: "\(devices)[bus]\nlog_level = \"warning\"\n")
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("device.unlock", ["lock": client.call("device.lock", ["devices": "cam0"])["lock"] ?? ""])
            try bus.write("\(devices)[bus]\nlog_level = \"info\"\n", to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually { bus.log.contains("configuration read again") }
            #expect(!bus.log.contains("lock begun"))
            try client.call("device.lock", ["devices": "cam0"])
            try await eventually { bus.log.contains("lock begun") }
            try await bus.stop()
        }

        private func topic(_ message: [Message]) throws -> String {
            String(decoding: try #require(message.first).bytes, as: UTF8.self)
        }
    }
}
