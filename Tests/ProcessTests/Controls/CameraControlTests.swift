import BusClient
import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Focus, exposure and zoom, of a camera that streams and so takes its time.
    @Suite(.timeLimit(.minutes(5))) struct CameraControls {
        private let state = "state/device/cam0/"

        /// A bus whose first camera streams.
        private func streaming(
            _ arguments: [String] = []
        ) async throws -> (bus: BusHarness, client: RawClient, frames: FrameRecorder) {
            let bus = try await BusHarness(virtual: 2, arguments: arguments)
            let client = try RawClient(path: bus.directory.commandSocket)
            let frames = try FrameRecorder(bus, "cam0", "gray:64x0")
            _ = try await frames.first { $0.isFrame }
            return (bus, client, frames)
        }

        private func control(_ name: String, of value: JSONValue?) -> JSONValue? { value?["controls"]?[name] }

        @Test func `both kinds of controls in one batch, in their own units`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let answer = try client.call(
                "device.set",
                [
                    "device": "cam0",
                    "controls": [
                        "exposureDuration": .number(0.01), "ISO": 200, "brightness": 5, "focusMode": "locked",
                    ],
                ])
            #expect(
                answer["applied"]?["cam0"]?["controls"] == [
                    "exposureDuration": .number(0.01), "ISO": 200, "brightness": 5, "focusMode": "locked",
                ])
            let device = try client.call("device.get", ["device": "cam0"])["device"]
            #expect(control("exposureMode", of: device) == "custom")
            #expect(control("exposure_time_absolute", of: device) == 100)
            #expect(device?["supports"]?["torchMode"] == ["off", "on", "auto"])
            let refusal = try client.refusal(
                "device.set", ["device": "cam0", "controls": ["videoZoomFactor": 9, "brightness": 6]])
            #expect(refusal?.reason == .controlOutOfRange && refusal?.data["max"] == 4)
            #expect(control("brightness", of: try client.call("device.get", ["device": "cam0"])["device"]) == 5)
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let change: JSONValue = ["device": "cam0", "controls": ["videoZoomFactor": 9]]
            let dry = try client.call(
                "device.configure", ["lock": lock, "changes": [change], "mode": "nearest", "dryRun": true])
            #expect(dry["verdict"] == "adjusted" && dry["adjusted"]?[0]?["given"] == 4)
            #expect(dry["applied"]?["cam0"]?["controls"] == ["videoZoomFactor": 4])
            try await bus.stop()
        }

        @Test func `focus at a point, and what the camera does meanwhile`() async throws {
            let (bus, client, frames) = try await streaming()
            let answer = try client.call("device.focus", ["device": "cam0", "point": ["x": 0.25, "y": 0.5]])
            #expect(
                answer["applied"]?["cam0"]?["controls"]?["focusPointOfInterest"] == [
                    "x": .number(0.25), "y": .number(0.5),
                ])
            try await bus.wait(for: state) {
                $0?["controls"]?["adjustingFocus"] == false && $0?["controls"]?["focusMode"] == "locked"
            }
            // The front camera has no focus at all.
            let refusal = try client.refusal("device.focus", ["device": "cam1", "point": ["x": 0.5, "y": 0.5]])
            #expect(refusal?.reason == .controlUnsupported)
            frames.stop()
            try await bus.stop()
        }

        @Test func `an exposure settles and is locked, by nobody's lock`() async throws {
            let (bus, client, frames) = try await streaming()
            let point: JSONValue = ["x": 0.95, "y": 0.5]
            let answer = try client.call("device.expose", ["device": "cam0", "point": point, "thenLock": true])
            #expect(answer["willLock"] == true)
            #expect(answer["applied"]?["cam0"]?["controls"]?["exposureMode"] == "continuousAutoExposure")
            let device = try await bus.wait(for: state) { $0?["controls"]?["exposureMode"] == "locked" }
            #expect(control("adjustingExposure", of: device) == false)
            #expect(try client.call("device.locks")["locks"] == [])
            // What was metered is kept.
            #expect((control("exposureDuration", of: device)?.double ?? 0) > 0.03)
            frames.stop()
            try await bus.stop()
        }

        @Test func `an automatic exposure has a bound, and tells how far it is from what is metered`() async throws {
            let (bus, client, frames) = try await streaming()
            func set(_ controls: JSONValue) throws -> JSONValue {
                try client.call("device.set", ["device": "cam0", "controls": controls])
            }
            @Sendable func isSettled(_ value: JSONValue?, _ duration: Double, _ iso: Double, _ offset: Double) -> Bool {
                let controls = value?["controls"]
                guard controls?["adjustingExposure"] == false, controls?["exposureMode"] == "continuousAutoExposure",
                    let told = controls?["exposureTargetOffset"]?.double
                else { return false }
                return controls?["exposureDuration"]?.double == duration && controls?["ISO"]?.double == iso
                    && abs(told - offset) < 0.01
            }
            try await bus.wait(for: state) { isSettled($0, 0.0156, 100, 0) }
            _ = try set(["activeMaxExposureDuration": .number(0.0039)])
            try await bus.wait(for: state) { isSettled($0, 0.0039, 400, 0) }
            _ = try set(["activeMaxExposureDuration": .number(0.0001)])
            try await bus.wait(for: state) { isSettled($0, 0.0001, 3200, -2.285) }
            // By hand it counts for nothing.
            let custom = try set(["exposureDuration": .number(0.0312), "ISO": 100])
            #expect(custom["adjusted"] == [])
            let device = try client.call("device.get", ["device": "cam0"])["device"]
            #expect(control("exposureTargetOffset", of: device) == 1 && control("ISO", of: device) == 100)
            let readOnly = try client.refusal(
                "device.set", ["device": "cam0", "controls": ["exposureTargetOffset": 0]])
            #expect(readOnly?.reason == .controlReadOnly)
            frames.stop()
            try await bus.stop()
        }

        @Test func `exposed once, and then as locked`() async throws {
            let (bus, client, frames) = try await streaming()
            let controls: JSONValue = [
                "exposurePointOfInterest": ["x": .number(0.95), "y": .number(0.5)], "exposureMode": "autoExpose",
            ]
            let answer = try client.call("device.set", ["device": "cam0", "controls": controls])
            #expect(answer["applied"]?["cam0"]?["controls"]?["exposureMode"] == "autoExpose")
            let device = try await bus.wait(for: state) { $0?["controls"]?["exposureMode"] == "locked" }
            #expect(control("adjustingExposure", of: device) == false)
            #expect((control("exposureDuration", of: device)?.double ?? 0) > 0.03)
            frames.stop()
            try await bus.stop()
        }

        @Test func `another client's lock prevents an exposure lock, and is named in the error`() async throws {
            let (bus, client, frames) = try await streaming()
            let observer = try await bus.connect()
            let messages = try await observer.watch(["event/device/"])
            // A process takes its time to start: it waits already, and has the lock long before the exposure has
            // settled.
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let holder = try bus.start("camerabus", ["lock", "cam0", "--wait", "60"])
            try await eventually { try client.call("device.locks")["waiting"]?.array?.isEmpty == false }
            try client.call("fault.inject", ["device": "cam0", "fault": "rate", "percent": 10])
            try client.call(
                "device.expose",
                ["device": "cam0", "point": ["x": 0.95, "y": 0.5], "thenLock": true, "lock": lock])
            try client.call("device.unlock", ["lock": lock])
            let event = try await Deadline.usual.limit("exposureLockFailed") {
                for try await message in messages where message.json["event"] == "exposureLockFailed" {
                    return message.json
                }
                throw TestingError("the events have ended")
            }
            #expect(event["reason"] == "deviceBusy")
            #expect(event["holder"]?["pid"]?.integer == Int64(holder.process.pid))
            #expect(
                control("exposureMode", of: try client.call("device.get", ["device": "cam0"])["device"])
                    == "continuousAutoExposure")
            frames.stop()
            await observer.close()
            try await bus.stop()
        }

        @Test func `a reset sets only controls that the camera has`() async throws {
            let (bus, client, frames) = try await streaming()
            try client.call("device.expose", ["device": "cam0", "point": ["x": 0.95, "y": 0.5], "thenLock": true])
            let answer = try client.call("device.resetFocusAndExposure", ["device": "cam0"])
            #expect(
                answer["reset"] == [
                    "exposureMode", "exposurePointOfInterest", "focusMode", "focusPointOfInterest",
                ])
            // The exposure that was to be locked is not.
            let settled = try await bus.wait(for: state) { $0?["controls"]?["adjustingExposure"] == false }
            #expect(control("exposureMode", of: settled) == "continuousAutoExposure")
            #expect(control("exposurePointOfInterest", of: settled) == ["x": .number(0.5), "y": .number(0.5)])
            #expect(
                try client.call("device.resetFocusAndExposure", ["device": "cam1"])["reset"] == [
                    "exposureMode", "exposurePointOfInterest",
                ])
            frames.stop()
            try await bus.stop()
        }

        @Test func `a zoom ramp runs, refuses others, is replaced and cancelled`() async throws {
            let (bus, client, frames) = try await streaming()
            let answer = try client.call("device.zoomRamp", ["device": "cam0", "factor": 4, "rate": 0.05])
            #expect(answer["from"]?.double == 1 && answer["to"]?.double == 4 && answer["milliseconds"] == 40_000)
            try await bus.wait(for: state) {
                $0?["controls"]?["rampingVideoZoom"] == true
                    && ($0?["controls"]?["videoZoomFactor"]?.double ?? 0) > 1
            }
            let busy = try client.refusal("device.set", ["device": "cam0", "controls": ["zoomValue": 0]])
            #expect(busy?.reason == .controlBusy && busy?.data["control"] == "zoomValue")
            try client.call("device.cancelZoomRamp", ["device": "cam0"])
            let stopped = try await bus.wait(for: state) { $0?["controls"]?["rampingVideoZoom"] == false }
            let factor = try #require(control("videoZoomFactor", of: stopped)?.double)
            #expect(factor > 1 && factor < 4)
            // A new one begins where it is, at any speed.
            let next = try client.call("device.zoomRamp", ["device": "cam0", "value": 1, "rate": 20])
            #expect(next["from"]?.double == factor)
            let end = try await bus.wait(for: state) {
                $0?["controls"]?["rampingVideoZoom"] == false && $0?["controls"]?["videoZoomFactor"] == 4
            }
            #expect(control("zoomValue", of: end) == 1)
            #expect(
                try client.refusal("device.zoomRamp", ["device": "cam0", "factor": 4.5])?.reason == .controlOutOfRange)
            #expect(try client.refusal("device.zoomRamp", ["device": "cam0"])?.reason == .invalidParams)
            frames.stop()
            try await bus.stop()
        }

        @Test(arguments: [false, true])
        func `a zoom ramp ends under another's lock, and not under its own`(isTakenOver: Bool) async throws {
            let (bus, client, frames) = try await streaming()
            try client.call("device.zoomRamp", ["device": "cam0", "factor": 4, "rate": .number(0.01)])
            // The process that began it may lock the device, and hand that lock on.
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            func isRamping() throws -> Bool {
                let device = try client.call("device.get", ["device": "cam0"])["device"]
                return control("rampingVideoZoom", of: device) == true
            }
            try client.call("device.set", ["device": "cam0", "controls": ["brightness": 2], "lock": lock])
            #expect(try isRamping())
            let request: JSONValue = ["device": "cam0", "factor": 3, "rate": .number(0.01), "lock": lock]
            let ramp = try await bus.run("camerabus", ["call", "device.zoomRamp", request.description])
            try #require(ramp.status == 0, "\(ramp)")
            try client.call("device.unlock", ["lock": lock])
            try client.call("device.zoomRamp", ["device": "cam0", "factor": 4, "rate": .number(0.01)])
            try client.call("device.set", ["device": "cam0", "controls": ["brightness": 3]])
            #expect(try isRamping())

            if isTakenOver { try client.call("device.lock", ["devices": "cam0"]) }
            let other = try bus.start("camerabus", ["lock", "cam0"] + (isTakenOver ? ["--take-over"] : []))
            let pid = Int64(other.process.pid)
            let locked = try await bus.wait(for: state) {
                $0?["lock"]?["holder"]?["pid"]?.integer == pid && $0?["controls"]?["rampingVideoZoom"] == false
            }
            #expect((control("videoZoomFactor", of: locked)?.double ?? 4) < 3)
            frames.stop()
            try await bus.stop()
        }

        @Test func `the telephone's formats each have their bounds`() async throws {
            let bus = try await BusHarness(virtual: 1, arguments: ["--virtual-profile", "iphone6"])
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try client.call("device.formats", ["device": "cam0"])["formats"]?.array?.count == 6)
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            func configure(_ change: [String: JSONValue]) throws -> JSONValue {
                let change = JSONValue.object(change.merging(["device": "cam0"]) { own, _ in own })
                return try client.call("device.configure", ["lock": lock, "changes": [change]])
            }
            _ = try configure(["activeFormat": "f4", "frameRate": 60, "controls": ["videoZoomFactor": 90]])
            let device = try client.call("device.get", ["device": "cam0"])["device"]
            #expect(device?["activeFormat"]?["id"] == "f4" && device?["frameRate"] == 60)
            let refusal = try client.refusal(
                "device.set", ["device": "cam0", "lock": lock, "controls": ["ISO": 900]])
            #expect(refusal?.reason == .controlOutOfRange && refusal?.data["max"] == 464)
            // The smaller picture can't be zoomed as far, but is more sensitive.
            let answer = try configure(["activeFormat": "f0", "controls": ["ISO": 900]])
            #expect(answer["adjusted"]?.array?.contains { $0["path"] == "changes[0].controls.videoZoomFactor" } == true)
            let small = try client.call("device.get", ["device": "cam0"])["device"]
            #expect(small?["controls"]?["videoZoomFactor"] == .number(49.12))
            #expect(small?["supports"]?["videoHDREnabled"] == false)
            _ = try configure(["controls": ["exposureDuration": .number(0.000003)]])
            #expect(
                try client.call("device.get", ["device": "cam0"])["device"]?["controls"]?["exposureDuration"]
                    == .number(0.000003))
            try await bus.stop()
        }
    }
}
