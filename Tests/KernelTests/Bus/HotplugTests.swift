import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Foundation
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension KernelTests {
    /// Cameras that go and come back while the bus runs.
    @Suite(.enabled(if: KernelRing.topology != .multi, "once is enough")) struct Hotplug {
        @Test func driverUnbindsAndReturns() async throws {
            try await KernelRing.withoutTraces { try await goAndComeBack() }
        }

        private func goAndComeBack() async throws {
            let bus = try await BusHarness(virtual: nil, deadline: .after(seconds: 120))
            try await KernelTests.tellingLog(of: bus) { try await goAndComeBack(bus) }
            try await bus.stop(by: .after(seconds: 60))
        }

        private func goAndComeBack(_ bus: BusHarness) async throws {
            // For each step anew: emulated processors take their time, and more of it beside other work.
            var patience: Deadline { .after(seconds: 240) }
            let client = try RawClient(path: bus.directory.commandSocket)
            let count = KernelRing.identities.count
            var devices: [JSONValue] = []
            func areConnected(_ isConnected: Bool) throws -> Bool {
                devices = try client.call("device.list", within: 60)["devices"]?.array ?? []
                return devices.count == count
                    && devices.allSatisfy {
                        $0["connected"] == .bool(isConnected) && $0["worker"]?["state"] == "running"
                            && (!isConnected || !($0["activeFormat"]?.isNull ?? true))
                    }
            }
            try await eventually(by: patience) { try areConnected(true) }
            let ids = Dictionary(uniqueKeysWithValues: devices.map { ($0["uniqueID"] ?? .null, $0["id"] ?? .null) })
            let first = try #require(KernelRing.identities.first).uniqueID
            let original = try #require(ids[.string(first)])
            try client.call("device.rename", ["device": original, "name": "front"], within: 60)
            try await eventually(by: patience) {
                try client.call("device.get", ["device": "front"], within: 60)["device"]?["worker"]?["state"]
                    == "running"
            }
            let grant = try client.call("device.lock", ["devices": "front"], within: 60)
            let lock = grant["lock"] ?? .null
            try client.call(
                "device.configure",
                [
                    "lock": lock,
                    "changes": [
                        [
                            "device": "front", "frameRate": 10,
                            "controls": ["brightness": 77, "gain_automatic": false, "gain": 40],
                            "activeFormat": ["pixelFormat": "YUYV", "width": 320, "height": 180],
                        ]
                    ],
                ])
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket)
            try events.socket.subscribe("event/device/front/")
            let reader = try FrameReader(bus, "front", "native")
            let before = try reader.next()

            try KernelRing.drive("unbind")
            try await eventually(by: patience) { try areConnected(false) }
            #expect(devices.allSatisfy { $0["error"]?["reason"] == "deviceDisconnected" && $0["node"] == .null })
            #expect(try event(events) == "disconnected")
            #expect(devices.first { $0["id"] == "front" }?["lock"]?["fence"] == grant["fence"])

            let bound = MonotonicClock.now()
            try KernelRing.drive("bind")
            // The same subscriber, which has done nothing meanwhile.
            var frame = try reader.next()
            while frame.stream == before.stream { frame = try reader.next() }
            print("frames were back \((MonotonicClock.now() - bound) / 1_000_000) ms after the driver")
            #expect(frame.bytes.count == 320 * 180 * 2)
            try await eventually(by: patience) { try areConnected(true) }
            #expect(try event(events) == "connected")
            for device in devices where device["id"] != "front" {
                #expect(ids[device["uniqueID"] ?? .null] == device["id"])
            }
            let now = try client.call("device.get", ["device": "front"], within: 60)["device"]
            #expect(now?["uniqueID"]?.string == first && now?["frameRate"] == 10)
            #expect(now?["controls"]?["brightness"] == 77 && now?["notRestored"] == [])
            #expect(now?["lock"]?["fence"] == grant["fence"])
            let node = try #require(now?["node"]?.string)
            // A driver begins anew with the automatic mode on.
            #expect(
                try v4l2ctl(["-d", node, "-C", "brightness,gain_automatic,gain"])
                    == "brightness: 77\ngain_automatic: 0\ngain: 40\n")
        }

        // The next of those that tell of the camera itself: the mode that is set changes controls besides.
        private func event(_ events: RawClient) throws -> String? {
            while true {
                let frames = try events.receive(within: 60)
                let event = try JSONValue(parsing: try #require(frames.last).bytes)["event"]?.string
                if event != "controlsChanged" { return event }
            }
        }
    }
}
