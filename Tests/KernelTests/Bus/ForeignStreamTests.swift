import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import JSON
import LinuxIO
import Testing

extension KernelTests {
    /// Another program streams a camera of the bus, in a format of its own.
    @Suite(.enabled(if: KernelRing.topology != .multi, "once is enough")) struct ForeignStream {
        @Test func isNamedAndOutlived() async throws {
            let bus = try await BusHarness(virtual: nil, deadline: .after(seconds: 120))
            try await KernelTests.tellingLog(of: bus) { try await stream(beside: bus) }
            try await bus.stop(by: .after(seconds: 60))
        }

        private func stream(beside bus: BusHarness) async throws {
            // For each step anew.
            var patience: Deadline { .after(seconds: 120) }
            let client = try RawClient(path: bus.directory.commandSocket)
            let identity = try #require(KernelRing.identities.first)
            let node = try #require(identity.node)
            var device: JSONValue = .null
            func value() throws -> JSONValue {
                try client.call("device.get", ["device": device["id"] ?? .null], within: 60)["device"] ?? .null
            }
            try await eventually(by: patience) {
                let devices = try client.call("device.list", within: 60)["devices"]?.array ?? []
                device = devices.first { $0["uniqueID"]?.string == identity.uniqueID } ?? .null
                return !(device["activeFormat"]?.isNull ?? true)
            }
            let lock = try client.call("device.lock", ["devices": device["id"] ?? .null])["lock"] ?? .null
            try client.call(
                "device.configure",
                [
                    "lock": lock,
                    "changes": [
                        [
                            "device": device["id"] ?? .null, "frameRate": 10, "controls": ["brightness": 77],
                            "activeFormat": ["pixelFormat": "YUYV", "width": 320, "height": 180],
                        ]
                    ],
                ], within: 60)
            try client.call("device.unlock", ["lock": lock])
            try await eventually(by: patience) { try value()["isOpen"] == false }

            let other = try bus.start(
                "v4l2-ctl",
                [
                    "-d", node, "--set-fmt-video", "width=640,height=360,pixelformat=YUYV", "--set-ctrl",
                    "brightness=9", "--stream-mmap=4",
                ])
            // It says something with its first frame.
            try await eventually(by: patience) { !other.standardError.isEmpty }
            let reader = try FrameReader(bus, device["id"]?.string ?? "", "native")
            try await eventually(by: patience) { try value()["error"]?["reason"] == "deviceInUse" }
            let holder: JSONValue = ["pid": JSONValue(other.process.pid), "uid": 0, "name": "v4l2-ctl"]
            let told = try reader.error()
            #expect(told.reason == .deviceInUse && told.data["by"] == [holder])
            #expect(told.message.contains("v4l2-ctl (pid \(other.process.pid))"))
            // Its format is its own while it streams; a control isn't.
            let missing = try value()["notRestored"]?.array ?? []
            let format = try #require(missing.first { $0["path"] == "activeFormat" }, "\(missing)")
            #expect(format["wanted"]?["width"] == 320 && format["is"]?["width"] == 640)
            #expect(format["why"]?.string?.contains("VIDIOC_S_FMT") == true)
            #expect(missing.allSatisfy { $0["path"]?.string?.hasPrefix("controls.") == false })
            #expect(try v4l2ctl(["-d", node, "-C", "brightness"]) == "brightness: 77\n")

            other.process.send(SIGKILL)
            _ = try await other.end()
            let frame = try reader.next()
            #expect(frame.header["width"] == 320 && frame.bytes.count == 320 * 180 * 2)
            try await eventually(by: patience) {
                let now = try value()
                return now["notRestored"] == [] && now["error"] == .null && now["frameRate"] == 10
            }
        }
    }
}
