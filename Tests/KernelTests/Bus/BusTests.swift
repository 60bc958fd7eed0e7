import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import JSON
import Testing

extension KernelTests {
    /// The same binaries as everywhere, with the kernel's driver at the other end.
    @Suite struct Bus {
        @Test func streamsFromTheDriver() async throws {
            let bus = try await BusHarness(virtual: nil)
            let client = try RawClient(path: bus.directory.commandSocket)
            var devices: [JSONValue] = []
            // Emulated processors take their time to load the programs.
            try await eventually(by: .after(seconds: 240)) {
                devices = (try client.call("device.list")["devices"]?.array ?? []).filter { $0["mediaType"] == "video" }
                return devices.count == KernelRing.identities.count
                    && devices.allSatisfy {
                        $0["worker"]?["state"] == "running" && !($0["activeFormat"]?.isNull ?? true)
                    }
            }
            #expect(devices.allSatisfy { $0["driver"] == "vivid" })
            let first = try #require(KernelRing.identities.first)
            let device = try #require(devices.first { $0["uniqueID"]?.string == first.uniqueID }?["id"]?.string)

            let camera = V4L2Camera(first)
            let description = try camera.open()
            camera.close()
            #expect(
                try client.call("device.formats", ["device": .string(device)])["formats"]
                    == .array(description.formats.map(\.json)))
            let controls = try client.call("device.controls", ["device": .string(device)])["controls"]?.array ?? []
            // What the bus adds stands beside the driver's.
            #expect(
                controls.filter { $0["category"] != "CameraBus" }.map { $0["name"]?.string }
                    == description.controls.filter { $0.category != "CameraBus" }.map(\.name))

            let lock = try client.call("device.lock", ["devices": .string(device)])["lock"] ?? .null
            let format: JSONValue = ["pixelFormat": "YUYV", "width": 320, "height": 180]
            let result = try client.call(
                "device.configure",
                [
                    "lock": lock,
                    "changes": [
                        [
                            "device": .string(device), "activeFormat": format, "frameRate": 10,
                            "controls": ["brightness": 100],
                        ]
                    ],
                ])
            #expect(result["verdict"] == "valid")
            #expect(result["applied"]?[device]?["controls"]?["brightness"] == 100)

            let reader = try FrameReader(bus, device, "native")
            var last = try reader.next()
            #expect(last.bytes.count == 320 * 180 * 2)
            // vivid itself loses frames on a busy machine; what it delivers must come, and mostly it delivers all.
            var inARow = 0
            for _ in 0..<100 where inARow < 10 {
                let frame = try reader.next()
                #expect(frame.stream == last.stream && frame.captureSequence > last.captureSequence)
                inARow =
                    frame.captureSequence == last.captureSequence + 1 && frame.sequence == last.sequence + 1
                    ? inARow + 1 : 0
                last = frame
            }
            #expect(inARow == 10)
            let small = try FrameReader(bus, device, "jpeg:160x0@5").next()
            #expect(small.header["width"] == 160 && small.header["height"] == 90)
            #expect(small.bytes.prefix(2).elementsEqual([0xFF, 0xD8]))
            try await bus.stop()
        }
    }
}
