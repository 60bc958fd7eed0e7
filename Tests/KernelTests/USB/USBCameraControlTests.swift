import BusProtocol
import CameraBusTesting
import CaptureCore
import JSON
import Testing

extension USBTests {
    /// Camera controls of a USB camera, compared with v4l2-ctl beside the bus, and with what the camera itself has.
    @Suite struct CameraControls {
        /// What is asked; the driver's controls then, as v4l2-ctl prints them; and the camera's own.
        static let settings: [(asked: JSONValue, driver: [String], camera: [(String, String)])] = [
            (
                ["exposureDuration": .number(0.025), "lensPosition": .number(0.6), "whiteBalanceTemperature": 5000],
                [
                    "auto_exposure: 1", "exposure_time_absolute: 250", "focus_automatic_continuous: 0",
                    "focus_absolute: 100", "white_balance_automatic: 0", "white_balance_temperature: 5000",
                ], [("exposure_time", "250"), ("focus", "100"), ("white_balance", "5000")]
            ),
            (
                ["videoZoomFactor": .number(2.5), "focusMode": "continuousAutoFocus"],
                ["zoom_absolute: 250", "focus_automatic_continuous: 1"], [("zoom", "250")]
            ),
            (
                [
                    "exposureMode": "continuousAutoExposure", "whiteBalanceMode": "continuousAutoWhiteBalance",
                    "zoomValue": 0, "brightness": 7,
                ],
                ["auto_exposure: 3", "white_balance_automatic: 1", "zoom_absolute: 100", "brightness: 7"],
                [("zoom", "100"), ("brightness", "7")]
            ),
        ]

        @Test func areTheDriversInOtherUnits() async throws {
            let usb = try await USBBus()
            let camera = try EmulatedCamera(port: 0, serial: "CC-1")
            let id = try await usb.id(of: camera)
            let node = try #require(try usb.device(id)["node"]?.string)
            let supports = try usb.device(id)["supports"]
            #expect(supports?["exposureMode"] == ["locked", "autoExpose", "continuousAutoExposure", "custom"])
            #expect(supports?["exposurePointOfInterest"] == true)
            #expect(supports?["focusMode"] == ["locked", "continuousAutoFocus"])
            for name in ["torchMode", "ISO", "focusPointOfInterest", "sceneMode"] {
                #expect(supports?[name] == false, "\(name)")
                #expect(try usb.device(id)["controls"]?[name] == nil)
            }
            for (asked, driver, own) in Self.settings {
                let answer = try usb.client.call(
                    "device.set", ["device": .string(id), "controls": asked], within: 60)
                #expect(answer["applied"]?[id]?["controls"] == asked)
                let names = driver.map { String($0.prefix { $0 != ":" }) }
                let told = try KernelTests.v4l2ctl(["-d", node, "--get-ctrl", names.joined(separator: ",")])
                    .split(separator: "\n").map { line in String(line.prefix { $0 != "(" }).trimmedEnd }
                // It prints them in an order of its own.
                #expect(Set(told) == Set(driver))
                for (name, value) in own { #expect(try camera.command("get \(name)") == value) }
            }
            // The other way round: what somebody else sets is told in the model's units.
            // Only of a device that is open, and a lock would keep others out.
            try usb.configure([["device": .string(id), "activeFormat": USBBus.format, "frameRate": 5]])
            let frames = try FrameRecorder(usb.bus, id, "native")
            _ = try await frames.first(by: USBBus.patience) { $0.isFrame }
            _ = try KernelTests.v4l2ctl([
                "-d", node, "--set-ctrl", "auto_exposure=1,exposure_time_absolute=400,zoom_absolute=500",
            ])
            try await usb.wait(id) { device in
                device["controls"]?["exposureDuration"] == .number(0.04)
                    && device["controls"]?["exposureMode"] == "custom"
                    && device["controls"]?["videoZoomFactor"] == 5 && device["controls"]?["zoomValue"] == 1
            }
            // A camera that zooms by itself, as with a knob at its lens.
            try camera.command("set zoom 300")
            try await usb.wait(id) { $0["controls"]?["videoZoomFactor"] == 3 }
            let refusal = try usb.client.refusal(
                "device.focus", ["device": .string(id), "point": ["x": 0.5, "y": 0.5]])
            #expect(refusal?.reason == .controlUnsupported)
            frames.stop()
            camera.unplug()
            try await usb.bus.stop(by: USBBus.patience)
        }

        /// Uncompressed, metered where it lies, and compressed.
        static let pictures: [JSONValue] = [
            ["pixelFormat": "YUYV", "width": 320, "height": 180], USBBus.format,
        ]

        @Test(arguments: pictures) func anExposureForAPointFollowsItsBrightness(_ format: JSONValue) async throws {
            let usb = try await USBBus()
            let camera = try EmulatedCamera(port: 0, serial: "CC-3")
            try camera.command("scene")
            let id = try await usb.id(of: camera)
            let node = try #require(try usb.device(id)["node"]?.string)
            let started = try Int(camera.command("get exposure_time")) ?? 0
            try usb.configure([["device": .string(id), "activeFormat": format, "frameRate": 5]])
            func expose(_ x: Double, _ thenLock: Bool) throws -> JSONValue {
                try usb.client.call(
                    "device.expose",
                    [
                        "device": .string(id), "point": ["x": .number(x), "y": .number(0.5)],
                        "thenLock": .bool(thenLock),
                    ], within: 60)
            }
            // At the dark left: longer, as long as a frame lasts, and then with gain.
            #expect(try expose(0.1, false)["willLock"] == false)
            #expect(try usb.device(id)["controls"]?["adjustingExposure"] == true)
            try await usb.wait(id) { $0["controls"]?["adjustingExposure"] == false }
            let dark = try Int(camera.command("get exposure_time")) ?? 0
            #expect(dark > 3 * started && dark <= 2000, "\(started) \(dark)")
            #expect(try usb.device(id)["controls"]?["exposureMode"] == "continuousAutoExposure")
            // At the bright right: shorter; and then it stays so.
            #expect(try expose(0.9, true)["willLock"] == true)
            try await usb.wait(id) { $0["controls"]?["exposureMode"] == "locked" }
            let bright = try Int(camera.command("get exposure_time")) ?? 0
            #expect(bright < started && bright > 0, "\(started) \(bright)")
            let told = try KernelTests.v4l2ctl(["-d", node, "--get-ctrl", "auto_exposure,exposure_time_absolute"])
            #expect(told.contains("auto_exposure: 1") && told.contains("exposure_time_absolute: \(bright)"), "\(told)")
            #expect(
                try usb.device(id)["controls"]?["exposureDuration"]?.double.map { Int(($0 * 10_000).rounded()) }
                    == bright)
            // In the middle the camera does it by itself.
            try usb.client.call("device.resetFocusAndExposure", ["device": .string(id)], within: 60)
            let reset = try KernelTests.v4l2ctl(["-d", node, "--get-ctrl", "auto_exposure"])
            #expect(reset.contains("auto_exposure: 3"), "\(reset)")
            camera.unplug()
            try await usb.bus.stop(by: USBBus.patience)
        }

        @Test func aRampMovesTheCamerasZoom() async throws {
            let usb = try await USBBus()
            let camera = try EmulatedCamera(port: 0, serial: "CC-2")
            let id = try await usb.id(of: camera)
            try usb.client.call("device.zoomRamp", ["device": .string(id), "factor": 4, "rate": 2], within: 60)
            try await usb.wait(id) {
                $0["controls"]?["rampingVideoZoom"] == false && $0["controls"]?["videoZoomFactor"] == 4
            }
            #expect(try camera.command("get zoom") == "400")
            camera.unplug()
            try await usb.bus.stop(by: USBBus.patience)
        }
    }
}

extension String {
    fileprivate var trimmedEnd: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
