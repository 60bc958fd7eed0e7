import BusProtocol
import CameraBusTesting
import CaptureCore
import JSON
import LinuxIO
import Testing

extension USBTests {
    /// What cameras do wrong, and what subscribers see of it: frames are back without anybody's doing.
    @Suite struct Faults {
        @Test func framesComeBackByThemselves() async throws {
            let usb = try await USBBus()
            let camera = try EmulatedCamera(port: 0, serial: "SN-F")
            let id = try await usb.id(of: camera)
            try usb.configure([["device": .string(id), "activeFormat": USBBus.format, "frameRate": 15]])
            let table = FaultTable(try FrameRecorder(usb.bus, id, "native"))
            let frames = table.recorder
            _ = try await frames.first(by: USBBus.patience) { $0.sequence >= 5 }

            // Pictures that are no use are not given on, and counted.
            for (fault, driver) in [("short 3", "short JPEGs"), ("corrupt 3", "V4L2_BUF_FLAG_ERROR, or a hole")] {
                let from = table.begin()
                try camera.command(fault)
                let back = try await frames.first(from: from + 1, by: USBBus.patience) { entry in
                    entry.isFrame
                        && entry.captureSequence - entry.sequence
                            >= frames.entries[from].captureSequence - frames.entries[from].sequence + 3
                }
                #expect(back.entry.stream == frames.entries[from].stream)
                table.note(fault, driver: driver, back: back)
            }

            // The endpoint halts: the driver gives up its transfers, and says nothing. Only silence tells.
            for (fault, driver) in [("halt", "damaged buffers, then silence"), ("mute", "silence")] {
                let from = table.begin()
                let stream = frames.entries[from].stream
                try camera.command(fault)
                if fault == "mute" {
                    _ = try await frames.first(from: from, by: USBBus.patience) { !$0.isFrame }
                    try camera.command("talk")
                }
                let back = try await frames.first(from: from, by: USBBus.patience) { $0.isFrame && $0.stream != stream }
                table.note(fault, driver: driver, back: back)
            }

            // A format that can't be negotiated when the stream is next started.
            var from = table.begin()
            var stream = frames.entries[from].stream
            try camera.command("probe stall")
            try camera.command("halt")
            _ = try await frames.first(from: from, by: USBBus.patience) { !$0.isFrame }
            try camera.command("probe right")
            let negotiated = try await frames.first(from: from, by: USBBus.patience) {
                $0.isFrame && $0.stream != stream
            }
            table.note("probe stalled", driver: "EIO from S_FMT or STREAMON", back: negotiated)

            // A control that is stalled is the client's error, and no more.
            from = table.begin()
            stream = frames.entries[from].stream
            try camera.command("stall brightness")
            let refusal = try usb.client.refusal(
                "device.set", ["device": .string(id), "controls": ["brightness": 21]])
            print("a stalled control is refused with \(refusal.map { "\($0)" } ?? "nothing")")
            #expect(refusal != nil)
            try usb.client.call("device.set", ["device": .string(id), "controls": ["brightness": 22]])
            #expect(try camera.command("get brightness") == "22")
            let after = try await frames.first(from: frames.entries.count, by: USBBus.patience) { $0.isFrame }
            #expect(after.entry.stream == stream)
            table.note("control stalled", driver: "EIO or EPIPE from S_CTRL", back: after)

            // Another size than the one that was asked for: told as it is, never taken for the wanted one.
            try camera.command("probe wrong")
            let wrong = #expect(throws: BusError.self) {
                try usb.configure([
                    ["device": .string(id), "activeFormat": ["pixelFormat": "MJPG", "width": 1280, "height": 720]]
                ])
            }
            print("a wrong answer to a probe: \(wrong.map { "\($0)" } ?? "nothing")")
            try camera.command("probe right")
            let format = try usb.device(id)["activeFormat"]
            #expect(format?["width"] == 640 && format?["height"] == 360)

            table.print()
            frames.stop()
            camera.unplug()
            try await usb.bus.stop(by: USBBus.patience)
        }

        /// A camera whose every control is stalled when it is plugged in has its pictures all the same.
        @Test func allControlsStalled() async throws {
            let usb = try await USBBus()
            let camera = try EmulatedCamera(port: 0, serial: "SN-C", stalls: 100_000)
            let id = try await usb.id(of: camera)
            let frames = try FrameRecorder(usb.bus, id, "native")
            _ = try await frames.first(by: USBBus.patience) { $0.isFrame }
            frames.stop()
            camera.unplug()
            try await usb.bus.stop(by: USBBus.patience)
        }
    }
}
