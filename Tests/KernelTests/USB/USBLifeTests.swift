import BusProtocol
import CameraBusTesting
import CaptureCore
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension USBTests {
    /// Two cameras, of which one suffers, and the other must not notice.
    @Suite struct Life {
        private static let settings: JSONValue = [
            "focus_automatic_continuous": false, "focus_absolute": 30, "auto_exposure": 1,
            "exposure_time_absolute": 250,
            "brightness": 12,
        ]

        @Test func oneIsUnpluggedWhileBothStream() async throws {
            let usb = try await USBBus()
            var one = try EmulatedCamera(port: 0, serial: "SN-A")
            let other = try EmulatedCamera(port: 1, serial: "SN-B")
            let (victim, bystander) = (try await usb.id(of: one), try await usb.id(of: other))
            try usb.configure([
                [
                    "device": .string(victim), "activeFormat": USBBus.format, "frameRate": 5,
                    "controls": Self.settings,
                ],
                ["device": .string(bystander), "activeFormat": USBBus.format, "frameRate": 5],
            ])
            let uniqueID = try usb.device(victim)["uniqueID"]
            let frames = try FrameRecorder(usb.bus, victim, "native")
            let others = try FrameRecorder(usb.bus, bystander, "native")
            let before = try await frames.first(by: USBBus.patience) { $0.sequence >= 5 }
            _ = try await others.first(by: USBBus.patience) { $0.sequence >= 5 }
            let from = others.entries.count - 1

            one.unplug()
            let lost = try await frames.first(from: before.place, by: USBBus.patience) { !$0.isFrame }
            #expect(lost.entry.error?.reason == .deviceDisconnected)
            try await usb.wait(victim, isConnected: false)

            one = try EmulatedCamera(port: 0, serial: "SN-A")
            let plugged = MonotonicClock.now()
            // The same subscriber, and nobody has asked for anything.
            let back = try await frames.first(from: lost.place, by: USBBus.patience) { $0.isFrame }
            print("plugged in → frames: \((back.entry.arrival - plugged) / 1_000_000) ms")
            #expect(back.entry.stream != before.entry.stream)
            try await usb.wait(victim, isConnected: true)
            let device = try usb.device(victim)
            #expect(device["uniqueID"] == uniqueID)
            #expect(device["frameRate"] == 5)
            #expect(device["activeFormat"]?["width"] == 640 && device["activeFormat"]?["pixelFormat"] == "MJPG")
            #expect(device["notRestored"] == [])
            for (name, value) in Self.settings.object ?? [:] { #expect(device["controls"]?[name] == value, "\(name)") }
            // And as the camera itself has it.
            #expect(try one.command("get focus") == "30")
            #expect(try one.command("get focus_automatic") == "0")
            #expect(try one.command("get exposure_time") == "250")
            #expect(try one.command("get brightness") == "12")

            _ = try await others.first(from: others.entries.count, by: USBBus.patience) { $0.isFrame }
            let entries = others.entries.dropFirst(from)
            for (entry, next) in zip(entries, entries.dropFirst()) {
                #expect(next.isFrame && next.continues(entry), "\(entry) → \(next)")
            }
            print("the other camera meanwhile: \(entries.count) frames, no gap")
            frames.stop()
            others.stop()
            one.unplug()
            other.unplug()
            try await usb.bus.stop(by: USBBus.patience)
        }

        /// A camera that needs three seconds for a control: its frames go on, and the bus says what it is waiting for.
        @Test func slowControl() async throws {
            let usb = try await USBBus()
            let camera = try EmulatedCamera(port: 0, serial: "SN-S")
            let id = try await usb.id(of: camera)
            try usb.configure([["device": .string(id), "activeFormat": USBBus.format, "frameRate": 5]])
            let frames = try FrameRecorder(usb.bus, id, "native")
            let first = try await frames.first(by: USBBus.patience) { $0.sequence >= 5 }
            try camera.command("slow 3 brightness")
            try usb.client.start("device.set", ["device": .string(id), "controls": ["brightness": 33]])
            let watcher = try RawClient(path: usb.bus.directory.commandSocket)
            // How many entries there were when it was first told to be busy, and when last.
            var busy: (from: Int, to: Int)?
            try await eventually(by: USBBus.patience) {
                let device = try watcher.call("device.get", ["device": .string(id)])["device"]
                if device?["worker"]?["busySince"]?.isNull == false {
                    let count = frames.entries.count
                    busy = (busy?.from ?? count, count)
                }
                return device?["controls"]?["brightness"] == 33
            }
            let (from, to) = try #require(busy)
            #expect(frames.entries[from..<to].contains { $0.isFrame })
            _ = try usb.client.reply(within: 60).result.get()
            #expect(try await watched(watcher, id).isNull)
            #expect(frames.entries.dropFirst(first.place).allSatisfy { $0.stream == first.entry.stream })
            frames.stop()
            camera.unplug()
            try await usb.bus.stop(by: USBBus.patience)
        }

        private func watched(_ client: RawClient, _ id: String) async throws -> JSONValue {
            var value: JSONValue = .null
            try await eventually {
                value =
                    try client.call("device.get", ["device": .string(id)])["device"]?["worker"]?["busySince"] ?? .null
                return value.isNull
            }
            return value
        }

        /// Other programs are kept out while it is locked; what they change otherwise is seen, and what the camera
        /// changes.
        @Test func othersAreRefusedOrSeen() async throws {
            let usb = try await USBBus()
            let camera = try EmulatedCamera(port: 0, serial: "SN-O")
            let id = try await usb.id(of: camera)
            let node = try #require(try usb.device(id)["node"]?.string)
            let lock = try usb.client.call("device.lock", ["devices": .string(id)])["lock"] ?? .null
            try await usb.wait(id) { $0["kernelPriority"] == "record" }
            #expect(try KernelTests.v4l2ctl(["-d", node, "--set-ctrl", "brightness=7"]).contains("busy"))
            #expect(try camera.command("get brightness") == "0")
            let frames = try FrameRecorder(usb.bus, id, "native")
            _ = try await frames.first(by: USBBus.patience) { $0.isFrame }
            try usb.client.call("device.unlock", ["lock": lock])
            try await usb.wait(id) { $0["kernelPriority"] == "default" }

            let events = try RawClient(.subscribe, path: usb.bus.directory.eventsSocket)
            try events.socket.subscribe("event/device/\(id)/")
            let state = try RawClient(.subscribe, path: usb.bus.directory.eventsSocket)
            try state.socket.subscribe("state/device/\(id)/")
            // The present first, so that what follows is known to reach us.
            _ = try state.receive(within: 60)
            #expect(try KernelTests.v4l2ctl(["-d", node, "--set-ctrl", "brightness=9"]) == "")
            #expect(try change(events, "brightness") == ["old": 0, "new": 9])
            try camera.command("set zoom 200")
            #expect(try change(events, "zoom_absolute") == ["old": 100, "new": 200])
            var told: JSONValue = .null
            repeat {
                told = try JSONValue(parsing: try #require(state.receive(within: 60).last).bytes)
            } while told["value"]?[
                "controls"]?["zoom_absolute"] != 200
            #expect(told["value"]?["controls"]?["brightness"] == 9)
            frames.stop()
            camera.unplug()
            try await usb.bus.stop(by: USBBus.patience)
        }

        private func change(_ events: RawClient, _ control: String) throws -> JSONValue? {
            while true {
                let message = try JSONValue(parsing: try #require(events.receive(within: 60).last).bytes)
                guard let change = message["controls"]?[control] else { continue }
                #expect(message["event"] == "controlsChanged" && message["cause"] == "external")
                return change
            }
        }
    }
}
