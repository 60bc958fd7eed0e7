import BusClient
import BusProtocol
import CameraBusTesting
import FrameRing
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Many cameras, many readers, many renditions: that all of them get what they asked for. How fast is no test's
    /// affair.
    @Suite(.timeLimit(.minutes(5))) struct Scale {
        private func configure(_ client: RawClient, _ devices: [String], rate: Int64) throws {
            let names = JSONValue.array(devices.map(JSONValue.string))
            let lock = try client.call("device.lock", ["devices": names], within: 60)["lock"] ?? .null
            let changes = devices.map { device -> JSONValue in
                [
                    "device": .string(device), "frameRate": .integer(rate),
                    "activeFormat": ["pixelFormat": "YUYV", "width": 320, "height": 240],
                ]
            }
            try client.call("device.configure", ["lock": lock, "changes": .array(changes)], within: 60)
            try client.call("device.unlock", ["lock": lock], within: 60)
        }

        @Test func `sixteen cameras are read by reference at the same time`() async throws {
            let bus = try await BusHarness(virtual: 16, deadline: .after(seconds: 60))
            let client = try RawClient(path: bus.directory.commandSocket)
            let devices = (0..<16).map { "cam\($0)" }
            try configure(client, devices, rate: 5)
            let context = try Context()
            let readers = try devices.map { try ReferenceReader(bus, $0, context) }
            var streams: Set<String> = []
            for _ in 0..<5 {
                for (index, reader) in readers.enumerated() {
                    let frame = try reader.next(by: .after(seconds: 60))
                    #expect(frame.header.device == devices[index] && frame.header.width == 320)
                    #expect(frame.pictureCounter.map { Int($0.camera) } == index)
                    #expect(frame.pictureCounter.map { UInt64($0.counter) } == frame.header.captureSequence)
                    streams.insert(frame.header.stream)
                }
            }
            #expect(streams.count == 16)
            let all = try client.call("device.list", within: 60)["devices"]?.array ?? []
            #expect(all.filter { $0["memory"] == "virtual" }.count == 16)
            withExtendedLifetime(readers) {}
            try await bus.stop(by: .after(seconds: 60))
        }

        @Test func `sixty-four subscribers of one camera, and sixty-four readers of its ring`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            try configure(client, ["cam0"], rate: 10)
            let context = try Context()
            let readers = try (0..<64).map { _ in try ReferenceReader(bus, "cam0", context) }
            let rings = try (0..<64).map { _ in try RingConnection(bus.directory, "cam0") }
            var names: Set<String> = []
            for _ in 0..<3 {
                for reader in readers {
                    let frame = try reader.next(by: .after(seconds: 60))
                    #expect(frame.pictureCounter.map { UInt64($0.counter) } == frame.header.captureSequence)
                    names.insert(frame.header.buffer?.ring ?? "")
                }
                for ring in rings {
                    let frame = try #require(try ring.next(timeout: .seconds(60)))
                    #expect(frame.record.bytes == 320 * 240 * 2)
                    names.insert(ring.ring?.ring ?? "")
                }
            }
            // All of them have the same memory.
            #expect(names.count == 1)
            withExtendedLifetime((readers, rings)) {}
            try await bus.stop()
        }

        @Test func `eight renditions of one camera, each from its own ring`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            try configure(client, ["cam0"], rate: 5)
            let context = try Context()
            let renditions = [
                "native", "jpeg", "jpeg:160x0;q=70", "bgr", "rgb@2", "gray:160x0", "nv12", "i420:160x120",
            ]
            let readers = try renditions.map { try ReferenceReader(bus, "cam0", rendition: $0, context) }
            var names: Set<String> = []
            for _ in 0..<3 {
                for (rendition, reader) in zip(renditions, readers) {
                    let frame = try reader.next(by: .after(seconds: 60))
                    #expect(frame.header.rendition == rendition)
                    #expect(
                        frame.pictureCounter.map { UInt64($0.counter) } == frame.header.captureSequence, "\(rendition)")
                    names.insert(frame.header.buffer?.ring ?? "")
                }
            }
            #expect(names.count == renditions.count)
            withExtendedLifetime(readers) {}
            try await bus.stop()
        }
    }
}
