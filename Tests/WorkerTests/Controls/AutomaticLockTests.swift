import BusProtocol
import CaptureCore
import CaptureSources
import JSON
import Testing

@testable import Worker

/// Exposures that are locked by `3a_lock`, and what is set then: drivers ignore it, refuse it, or mark its controls.
@Suite("Locked exposures", .serialized, .timeLimit(.minutes(5)))
struct AutomaticLockTests {
    private let bench = TestBench()
    private let time = "exposure_time_absolute"

    init() {
        bench.set {
            $0.scene = [1]
            $0.extra = [
                CaptureControl(
                    name: "auto_exposure", title: "", id: 0x9A0901, type: .menu, minimum: 1, maximum: 3,
                    menu: [1: .name("Manual"), 3: .name("Aperture Priority")]),
                CaptureControl(
                    name: "exposure_time_absolute", title: "", id: 0x9A0902, type: .integer, minimum: 5, maximum: 1000,
                    defaultValue: 100),
                CaptureControl(
                    name: "iso_sensitivity", title: "", id: 0x9A0917, type: .integer, minimum: 25_000,
                    maximum: 3_200_000, defaultValue: 100_000),
                CaptureControl(name: "3a_lock", title: "", id: 0x9A091B, type: .bitmask, maximum: 7),
            ]
            $0.meddled = [
                "auto_exposure": .integer(3), "exposure_time_absolute": .integer(100),
                "iso_sensitivity": .integer(100_000), "3a_lock": .integer(0),
            ]
        }
    }

    private func open(_ manner: TestBench.LockManner) throws -> CameraDevice {
        bench.set { $0.lockManner = manner }
        let camera = CameraDevice(
            TestSource(bench), device: "cam0", committed: nil, zoom: DigitalZoomState(limit: 4))
        _ = try camera.open()
        try set(["exposureMode": "locked"], camera)
        #expect(try camera.look().configuration.controls["3a_lock"] == .integer(1))
        return camera
    }

    /// As a dry run says it and as it becomes, which has to be the same.
    private func set(_ controls: JSONValue, _ camera: CameraDevice) throws {
        let prepared = try camera.prepare(["device": "cam0", "controls": controls], path: "", mode: .exact)
        let applied = try camera.apply(prepared)
        #expect(applied.json["controls"] == prepared.json["controls"] && applied.json["adjusted"] == [])
    }

    @Test("a time or a sensitivity is set, and the mode is custom", arguments: TestBench.LockManner.allCases)
    func custom(_ manner: TestBench.LockManner) throws {
        let camera = try open(manner)
        try set(["exposureDuration": .number(0.005), "ISO": 200], camera)
        let now = try camera.look()
        #expect(now.values["exposureMode"] == "custom" && now.values["exposureDuration"] == .number(0.005))
        let values = now.configuration.controls
        #expect(values[time] == .integer(50) && values["iso_sensitivity"] == .integer(200_000))
        #expect(values["auto_exposure"] == .integer(1) && values["3a_lock"] == .integer(0))
    }

    @Test("a profile's values are set", arguments: TestBench.LockManner.allCases)
    func profile(_ manner: TestBench.LockManner) throws {
        let camera = try open(manner)
        try set(["3a_lock": 0, "auto_exposure": 1, "exposure_time_absolute": 50, "gain": 2], camera)
        let now = try camera.look()
        #expect(now.configuration.controls[time] == .integer(50) && now.values["exposureMode"] == "custom")
    }

    @Test("what is locked with its value is set first", arguments: TestBench.LockManner.allCases)
    func valueAndLock(_ manner: TestBench.LockManner) throws {
        let camera = try open(manner)
        try set(["3a_lock": 1, "auto_exposure": 1, "exposure_time_absolute": 50], camera)
        let values = try camera.look().configuration.controls
        #expect(values[time] == .integer(50) && values["3a_lock"] == .integer(1))
    }

    @Test("a change that is taken back leaves it locked", arguments: TestBench.LockManner.allCases)
    func takenBack(_ manner: TestBench.LockManner) throws {
        let camera = try open(manner)
        let before = try camera.look().configuration
        let applied = try camera.apply(
            try camera.prepare(
                ["device": "cam0", "controls": ["exposureDuration": .number(0.005)]], path: "", mode: .exact))
        camera.revoke(applied)
        #expect(try camera.rollBack(applied).configuration.controls == before.controls)
        #expect(try camera.look().values["exposureMode"] == "locked")
    }

    @Test("what was committed is put back over a lock", arguments: TestBench.LockManner.allCases)
    func restored(_ manner: TestBench.LockManner) throws {
        let camera = try open(manner)
        try set(["exposureDuration": .number(0.005)], camera)
        camera.close()
        bench.set {
            $0.meddled = ["auto_exposure": .integer(3), "exposure_time_absolute": .integer(7), "3a_lock": .integer(1)]
        }
        _ = try camera.open()
        let now = try camera.look()
        #expect(now.configuration.controls[time] == .integer(50) && now.values["exposureMode"] == "custom")
        #expect(camera.report().notRestored == [])
    }

    @Test("what is locked stays so while other settings are put back", arguments: TestBench.LockManner.allCases)
    func staysLocked(_ manner: TestBench.LockManner) throws {
        let camera = try open(manner)
        // Committed, and the camera's own again.
        try set(["exposureDuration": .number(0.005), "brightness": 7], camera)
        try set(["exposureMode": "continuousAutoExposure"], camera)
        try set(["exposureMode": "locked"], camera)
        bench.set { $0.meddled = ["exposure_time_absolute": .integer(80), "brightness": .integer(1)] }
        bench.clearCalls()
        camera.setLocked(true)
        try camera.defend()
        #expect(bench.now.calls.filter { $0.hasPrefix("set ") } == ["set brightness"])
        #expect(try camera.look().values["exposureMode"] == "locked")
    }

    @Test("a bracket is taken, and it is locked again", arguments: TestBench.LockManner.allCases)
    func bracket(_ manner: TestBench.LockManner) throws {
        let photos = PhotoTests()
        bench.set { $0.lockManner = manner }
        let worker = try WorkerFixture(bench)
        let change: JSONValue = ["device": "cam0", "controls": ["exposureMode": "locked"]]
        for action: WorkerOrder.Action in [
            .prepare(transaction: "t", change: change, path: "", mode: .exact), .apply(transaction: "t"),
            .finish(transaction: "t"),
        ] { _ = try worker.coordinator.order(action, fence: 1).get() }
        let capture = try photos.capture(
            worker, photos.order("a", PhotoSettings(bracket: .exposureBias([-1, 0, 1]))))
        #expect(capture.photos.map(\.exposure?.duration) == [5_000_000, 10_000_000, 20_000_000])
        #expect(capture.photos.map(\.exposure?.bias) == [-1, 0, 1])
        let lights = try capture.photos.map { try photos.light(capture.files[$0.index], $0.dimensions) }
        #expect(lights[0] + 20 < lights[1] && lights[1] + 20 < lights[2], "\(lights)")
        #expect(try worker.coordinator.order(.dropPhoto(job: "a")).get() == [:])
        try worker.coordinator.waitForStatus("locked again") {
            $0["controls"]?["3a_lock"] == 1 && $0["controls"]?["auto_exposure"] == 3
                && $0["controls"]?["exposureMode"] == "locked"
        }
        try worker.stop()
    }
}

/// Each mode of a camera after each other one: what the driver has then is what was asked, as a dry run says it.
@Suite("Modes after one another", .timeLimit(.minutes(5)))
struct ModePairTests {
    struct Setting: Sendable, CustomTestStringConvertible {
        var group: String
        var controls: JSONValue
        /// What the driver has then.
        var isSet: @Sendable ([String: Int64]) -> Bool
        var testDescription: String { "\(controls)" }

        init(_ group: String, _ controls: JSONValue, _ isSet: @escaping @Sendable ([String: Int64]) -> Bool) {
            (self.group, self.controls, self.isSet) = (group, controls, isSet)
        }

        init(_ group: String, _ controls: JSONValue, _ values: [String: Int64]) {
            self.init(group, controls) { now in values.allSatisfy { now[$0.key] == $0.value } }
        }

        func sets(_ name: String, _ value: JSONValue? = nil) -> Bool {
            value.map { controls[name] == $0 } ?? (controls[name] != nil)
        }
    }

    private static let af = "focus_automatic_continuous"
    private static let ae = "auto_exposure"
    private static let time = "exposure_time_absolute"
    private static let awb = "white_balance_automatic"
    private static func lock(_ values: [String: Int64], _ bit: Int64) -> Bool { (values["3a_lock"] ?? 0) & bit != 0 }

    static let settings: [Setting] = [
        Setting("focus", ["focusMode": "locked"], [af: 0]),
        Setting("focus", ["focusMode": "autoFocus"]) { $0[af] == 0 && $0["focus_absolute"] == 85 && !lock($0, 4) },
        Setting("focus", ["focusMode": "continuousAutoFocus"]) { $0[af] == 1 && !lock($0, 4) },
        Setting("focus", ["lensPosition": 0]) { $0[af] == 0 && $0["focus_absolute"] == 255 && !lock($0, 4) },
        Setting("focus", ["smoothAutoFocusEnabled": true], ["smooth_focus": 1]),
        Setting("exposure", ["exposureMode": "locked"]) {
            // Where the camera chooses nothing by itself, there is nothing to lock.
            ($0[ae] == 3 || $0["iso_sensitivity_auto"] == 1) == lock($0, 1)
        },
        Setting("exposure", ["exposureMode": "autoExpose"]) { $0[ae] == 1 && !lock($0, 1) },
        Setting("exposure", ["exposureMode": "continuousAutoExposure"]) { $0[ae] == 3 && !lock($0, 1) },
        Setting("exposure", ["exposureMode": "custom"]) { $0[ae] == 1 && !lock($0, 1) },
        Setting("exposure", ["exposureDuration": .number(0.02)]) { $0[ae] == 1 && $0[time] == 200 && !lock($0, 1) },
        Setting("exposure", ["ISO": 200]) {
            $0[ae] == 1 && $0["iso_sensitivity"] == 200_000 && $0["iso_sensitivity_auto"] == 0 && !lock($0, 1)
        },
        Setting("exposure", ["exposureTargetBias": 1], ["auto_exposure_bias": 6]),
        Setting("exposure", ["exposurePointOfInterest": ["x": 1, "y": 0]], ["exposure_point_x": 10_000]),
        Setting("white balance", ["whiteBalanceMode": "locked"], [awb: 0]),
        Setting("white balance", ["whiteBalanceMode": "autoWhiteBalance"]) { $0[awb] == 0 && !lock($0, 2) },
        Setting("white balance", ["whiteBalanceMode": "continuousAutoWhiteBalance"]) { $0[awb] == 1 && !lock($0, 2) },
        Setting("white balance", ["whiteBalanceTemperature": 3000]) {
            $0[awb] == 0 && $0["white_balance_temperature"] == 3000 && !lock($0, 2)
        },
        Setting("white balance", ["whiteBalanceGains": ["red": 2, "green": 1, "blue": 3]]) {
            $0[awb] == 0 && $0["red_balance"] == 2000 && $0["blue_balance"] == 3000 && !lock($0, 2)
        },
        Setting("lamp", ["flashMode": "off"]) { $0["led_mode"] != 1 },
        Setting("lamp", ["flashMode": "on"], ["led_mode": 1, "flash_automatic": 0]),
        Setting("lamp", ["flashMode": "auto"], ["led_mode": 1, "flash_automatic": 1]),
        Setting("lamp", ["torchMode": "off"]) { $0["led_mode"] != 2 },
        Setting("lamp", ["torchMode": "on"], ["led_mode": 2, "torch_automatic": 0]),
        Setting("lamp", ["torchMode": "auto"], ["led_mode": 2, "torch_automatic": 1]),
        Setting("lamp", ["torchLevel": 1], ["led_mode": 2, "intensity_torch_mode": 100]),
        Setting("HDR", ["videoHDREnabled": true], ["wide_dynamic_range": 1]),
        Setting("HDR", ["videoHDREnabled": false], ["wide_dynamic_range": 0]),
        Setting("HDR", ["automaticallyAdjustsVideoHDREnabled": true], ["wide_dynamic_range_automatic": 1]),
        Setting("HDR", ["automaticallyAdjustsVideoHDREnabled": false], ["wide_dynamic_range_automatic": 0]),
        Setting("zoom", ["videoZoomFactor": 3], ["zoom_absolute": 300]),
        Setting("zoom", ["zoomValue": .number(0.5)], ["zoom_absolute": 200]),
        Setting("all", ["3a_lock": 7], ["3a_lock": 7]),
        Setting("all", ["3a_lock": 0], ["3a_lock": 0]),
    ]

    /// What has no sense after one another.
    private func isRefused(_ second: Setting, after first: Setting) -> Bool {
        if second.sets("exposureTargetBias") {
            return first.sets("exposureDuration") || first.sets("ISO") || first.sets("exposureMode", "custom")
                || first.sets("exposureMode", "autoExpose")
        }
        return second.sets("videoHDREnabled") && first.sets("automaticallyAdjustsVideoHDREnabled", true)
    }

    private func values(_ camera: CameraDevice) throws -> [String: Int64] {
        try camera.look().configuration.controls.compactMapValues(\.number)
    }

    private func set(_ setting: Setting, _ camera: CameraDevice) throws {
        let change: JSONValue = ["device": "cam0", "controls": setting.controls]
        let prepared = try camera.prepare(change, path: "", mode: .exact)
        let applied = try camera.apply(prepared)
        #expect(applied.json["controls"] == prepared.json["controls"])
        #expect(applied.json["adjusted"] == prepared.json["adjusted"])
    }

    @Test("the second one is set, and the first one stays", arguments: settings)
    func pairs(_ first: Setting) throws {
        for second in Self.settings {
            let camera = CameraDevice(
                VirtualCamera(index: 0), device: "cam0", committed: nil, zoom: DigitalZoomState(limit: 4))
            _ = try camera.open()
            defer { camera.close() }
            try set(first, camera)
            let before = try values(camera)
            #expect(first.isSet(before), "\(first.controls)")
            do {
                try set(second, camera)
                let now = try values(camera)
                #expect(!isRefused(second, after: first) && second.isSet(now), "\(second.controls): \(now)")
                // All locks together are no mode of the other's.
                if first.group != second.group, second.group != "all", first.group != "all" {
                    #expect(first.isSet(now), "after \(second.controls): \(now)")
                }
            } catch let error as BusError {
                #expect(
                    isRefused(second, after: first) && error.reason == .controlBusy,
                    "\(second.controls): \(error.message)")
                #expect(try values(camera) == before)
            }
        }
    }
}
