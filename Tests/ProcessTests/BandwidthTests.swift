import BusProtocol
import CameraBusTesting
import JSON
import Testing

extension ProcessTests {
    /// Sessions whose cameras share a USB bus.
    @Suite(.timeLimit(.minutes(2))) struct Bandwidth {
        private static let hub = """
            [devices]
            hardware = false
            virtual = 3
            [usb.hub]
            devices = ["cam0", "virtual-1"]
            """

        @Test func `what doesn't fit is told before the start, with what would`() async throws {
            let bus = try await BusHarness(virtual: nil, configuration: Self.hub)
            let client = try RawClient(path: bus.directory.commandSocket)
            func create(_ device: String, _ preset: String, rate: Int64) throws -> String {
                let created = try client.call(
                    "session.create",
                    [
                        "preset": .string(preset),
                        "inputs": [["device": .string(device), "frameRate": .integer(rate)]],
                    ])
                return try #require(created["session"]?.string)
            }
            func call(_ method: String, _ session: String) throws -> JSONValue {
                try client.call(method, ["session": .string(session)])
            }

            let heavy = try create("cam0", "1280x720", rate: 30)
            let forecast = try call("session.get", heavy)
            #expect(try #require(forecast["hardwareCost"]?.double) > 1)
            #expect(forecast["state"]?["hardwareCost"] == .null, "it isn't started")
            #expect(
                forecast["explanation"]?.array?.last == "cam0 takes 136 % of what hub has for cameras.",
                "\(forecast["explanation"] ?? .null)")
            let refusal = try #require(try client.refusal("session.start", ["session": .string(heavy)]))
            #expect(refusal.reason == .limitExceeded && refusal.data["limit"] == "hardwareCost")
            #expect(refusal.data["plan"]?["runs"] == true)
            let change = refusal.data["plan"]?["changes"]?.array?.first
            #expect(change?["device"] == "cam0")
            #expect(change?["to"]?["activeFormat"]?["pixelFormat"] == "MJPG")
            #expect(refusal.message.contains("cam0 would stream MJPG instead of YUYV."))
            #expect(try call("session.get", heavy)["state"]?["state"] == "stopped")

            // Two that fit; the first learns of the second.
            let light = try create("cam0", "640x480", rate: 15)
            let started = try call("session.start", light)
            #expect(started["state"]?["state"] == "running")
            let alone = try #require(started["hardwareCost"]?.double)
            #expect(alone > 0.2 && alone < 0.3)
            let second = try create("cam1", "640x480", rate: 30)
            #expect(try #require(try call("session.start", second)["hardwareCost"]?.double) > 2 * alone)
            try await bus.wait(for: "state/session/\(light)/") { ($0?["hardwareCost"]?.double ?? 0) > 2 * alone }

            // The third has another bus, or none.
            let free = try create("cam2", "1280x720", rate: 30)
            #expect(try call("session.start", free)["hardwareCost"]?.double == 0)

            // Its own cameras are to take less; those that stream for others are not.
            let late = try create("cam1", "1920x1080", rate: 30)
            let other = try #require(try client.refusal("session.start", ["session": .string(late)]))
            #expect(other.data["plan"]?["changes"]?.array?.map { $0["device"] } == ["cam1"])
            try await bus.stop()
        }

        @Test func `a camera that finds no room takes less, and says so`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("fault.inject", ["device": "cam0", "fault": "noSpace", "milliseconds": 700])
            let created = try client.call("session.create", ["preset": "high", "inputs": ["cam0"]])
            let session = try #require(created["session"]?.string)
            let wanted = try #require(created["resolved"]?.array?.first)
            try client.call("session.start", ["session": .string(session)])
            let state = try await bus.wait(for: "state/session/\(session)/") { $0?["state"] == "running" }
            let told = state?["explanation"]?.array?.compactMap(\.string) ?? []
            #expect(told.contains { $0.contains("found no room") }, "\(told)")
            #expect(state?["resolved"]?.array?.first != wanted)
            try await bus.stop()
        }
    }
}
