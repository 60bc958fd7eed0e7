import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension KernelTests {
    /// Sessions of cameras that the kernel has drivers for.
    @Suite(.enabled(if: KernelRing.topology != .multi, "once is enough")) struct Sessions {
        @Test func driverUnbindsAndReturnsDuringASession() async throws {
            try await KernelRing.withoutTraces {
                let bus = try await BusHarness(virtual: nil, deadline: .after(seconds: 120))
                try await KernelTests.tellingLog(of: bus) { try await goAndComeBack(bus) }
                try await bus.stop(by: .after(seconds: 60))
            }
        }

        private func goAndComeBack(_ bus: BusHarness) async throws {
            var patience: Deadline { .after(seconds: 240) }
            let client = try RawClient(path: bus.directory.commandSocket)
            var device = ""
            try await eventually(by: patience) {
                let devices = try client.call("device.list", within: 60)["devices"]?.array ?? []
                device = devices.first { !($0["activeFormat"]?.isNull ?? true) }?["id"]?.string ?? ""
                return !device.isEmpty
            }
            let wish: JSONValue = [
                "device": .string(device), "activeFormat": ["pixelFormat": "YUYV", "width": 320, "height": 180],
            ]
            let session = try client.call("session.create", ["inputs": [wish]], within: 60)["session"]?.string ?? ""
            let topic = "event/session/\(session)/"
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket, topics: [topic, "ack/1/"])
            while try events.receive(within: 60)[0].bytes.elementsEqual("ack/1/".utf8) == false {}
            try client.start("session.start", ["session": .string(session)])
            #expect(try Self.next(events)["event"] == "didStartRunning")
            _ = try client.reply(within: 60).result.get()
            // An emulated machine may take longer than the reply waits.
            let answer = try client.call("session.get", ["session": .string(session)], within: 60)
            let resolved = answer["resolved"]?.array?.first
            let reader = try FrameReader(bus, device, try #require(resolved?["rendition"]?.string))
            let before = try reader.next()

            try KernelRing.drive("unbind")
            let interrupted = try Self.next(events)
            #expect(interrupted["event"] == "wasInterrupted" && interrupted["reason"] == "deviceDisconnected")
            try KernelRing.drive("bind")
            // Nobody does anything.
            #expect(try Self.next(events)["event"] == "interruptionEnded")
            var frame = try reader.next()
            while frame.stream == before.stream { frame = try reader.next() }
            #expect(frame.header["width"] == 320 && frame.header["height"] == 180)
        }

        private static func next(_ events: RawClient) throws -> JSONValue {
            try JSONValue(parsing: try #require(try events.receive(within: 240).last).bytes)
        }
    }
}
