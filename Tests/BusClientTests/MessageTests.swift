import BusClient
import BusProtocol
import CameraBusTesting
import JSON
import Testing

@Suite(.timeLimit(.minutes(5))) struct MessageTests {
    @Test func `what is published after the subscription comes in order`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let messages = try await client.watch(["state/device/", "event/"])
        bus.setState("state/bus/", ["x": 1])
        for number in 0..<100 { bus.setState("state/device/cam0/", ["x": JSONValue(number)]) }
        for number in 0..<100 {
            let message = try await messages.next()
            #expect(message.topic == "state/device/cam0/")
            #expect(message.json["value"]?["x"] == JSONValue(number))
        }
    }

    @Test func `a slow reader gets everything that fits the queues`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let messages = try await client.watch(["state/"])
        let witness = try await client.watch(["state/"])
        // More than are kept here, fewer than with libzmq's queues: reading stops and goes on.
        for number in 0..<1500 {
            bus.setState("state/device/cam0/", ["x": JSONValue(number)])
            _ = try await witness.next()
        }
        for number in 0..<1500 { #expect(try await messages.next().json["value"]?["x"] == JSONValue(number)) }
    }

    @Test func `a bus without heartbeat is silent, one with it is not`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let messages = try await client.watch(["state/"], silence: .milliseconds(300))
        let error = await #expect(throws: ClientError.self) { try await messages.next() }
        #expect(error == .silent("No heartbeat of the bus for 0.3 s."))
        let heartbeats = try await client.watch(["heartbeat"], silence: .seconds(600))
        bus.beat()
        #expect(try await heartbeats.next().topic == "heartbeat/")
    }

    @Test func `the mirror has the state and follows it`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let observer = try await client.observe(["state/device/"])
        #expect(observer.values.keys.sorted() == ["state/device/cam0/", "state/device/cam1/"])
        bus.setState("state/device/cam0/", ["x": 1])
        #expect(try await observer.next() == .state(topic: "state/device/cam0/", value: ["x": 1]))
        bus.setState("state/device/cam1/", .null)
        #expect(try await observer.next() == .state(topic: "state/device/cam1/", value: .null))
        #expect(observer["state/device/cam1/"] == nil)
    }

    @Test func `a lost change is noticed by the next one and by the heartbeat`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let observer = try await client.observe(["state/device/"])
        bus.setState("state/device/cam0/", ["x": 1])
        #expect(try await observer.next() == .state(topic: "state/device/cam0/", value: ["x": 1]))
        bus.setState("state/device/cam0/", ["x": 2], isLost: true)
        bus.setState("state/device/cam0/", ["x": 3])
        #expect(try await observer.next() == .state(topic: "state/device/cam0/", value: ["x": 3]))
        bus.setState("state/device/cam1/", ["x": 4], isLost: true)
        bus.beat()
        #expect(try await observer.next() == .state(topic: "state/device/cam1/", value: ["x": 4]))
    }

    @Test func `a bus that was started again is followed`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let observer = try await client.observe(["state/device/"])
        bus.stop()
        try bus.restart()
        bus.setState("state/device/cam0/", ["x": 9], isLost: true)
        try await eventually { bus.subscriptions.contains("heartbeat/") }
        bus.beat()
        #expect(try await observer.next() == .state(topic: "state/device/cam0/", value: ["x": 9]))
    }

    @Test func `waiting for a value ends with it`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let observer = try await client.observe(["state/"])
        let waiting = Task { try await observer.wait(for: "state/device/cam0/") { $0?["isOpen"] == true } }
        bus.setState("state/device/cam1/", ["isOpen": true])
        bus.setState("state/device/cam0/", ["isOpen": true, "x": 5])
        #expect(try await waiting.value?["x"] == 5)
    }
}
