import BusClient
import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing

/// The orderly end of the bus: whoever waits is told at once.
@Suite(.timeLimit(.minutes(5))) struct EndTests {
    private static let lastWord = JSONValue.object([
        "epoch": "e1", "sequence": 9, "previous": 0, "event": "ended",
    ]).serialized

    @Test func `frames, messages and observers end with the bus's last word`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray")
        let messages = try await client.watch(["state/lock/"])
        let observer = try await client.observe(["state/device/"])
        // Who listens to a device hears it on a connection of its own.
        try await eventually { bus.subscriptions.count { $0 == "event/bus/" } == 3 }
        bus.publish("event/bus/", Self.lastWord)
        let ended = ClientError.ended(directory: bus.path)
        await #expect(throws: ended) { try await frames.next() }
        await #expect(throws: ended) { try await messages.next() }
        await #expect(throws: ended) { try await observer.next() }
        // The next bus's are others.
        let again = try await client.frames("cam0", "gray")
        bus.publishFrame(
            "cam0", "gray", header: FakeBus.header("cam0", "gray", sequence: 1), payload: [1, 2, 3, 4])
        #expect(try await again.next().header.sequence == 1)
    }

    @Test func `who watches events gets the last word before the end`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let messages = try await client.watch(["event/"])
        bus.publish("event/bus/", Self.lastWord)
        #expect(try await messages.next().json["event"] == "ended")
        await #expect(throws: ClientError.ended(directory: bus.path)) { try await messages.next() }
    }

    @Test func `calls end where the bus has taken its socket away, and wait where it was killed`() async throws {
        let bus = try FakeBus { request, respond in
            guard request.method == "bus.metrics" else { return false }
            respond(.nothing)
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        try await Self.stop(bus, client)
        let waiting = Task { try await client.call("bus.ping", timeout: .seconds(50)) }
        try bus.restart()
        #expect(try await waiting.value == [:])
        try await Self.stop(bus, client)
        File.remove("\(bus.path)/command.sock")
        await #expect(throws: ClientError.ended(directory: bus.path)) {
            try await client.call("device.list", timeout: .seconds(50))
        }
    }

    /// Ends the bus while a call waits: when that has failed, the client knows that there is no bus.
    private static func stop(_ bus: FakeBus, _ client: Client) async throws {
        let count = bus.requests.count
        let unanswered = Task { try await client.call("bus.metrics", timeout: .seconds(50)) }
        try await eventually { bus.requests.count > count }
        bus.stop()
        await #expect(throws: ClientError.connectionLost(method: "bus.metrics")) { try await unanswered.value }
    }
}
