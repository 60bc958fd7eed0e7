import BusProtocol
import JSON
import Testing

@testable import CaptureCore

/// A webcam whose exposure this program can drive.
@Suite struct ExposureMeteringTests {
    private static let driver = [
        CaptureControl(
            name: "auto_exposure", title: "", id: 0x9A0901, type: .menu, maximum: 3,
            menu: [1: .name("Manual"), 3: .name("Aperture Priority")]),
        CaptureControl(
            name: "exposure_time_absolute", title: "", id: 0x9A0902, type: .integer, minimum: 3, maximum: 2047),
        CaptureControl(name: "gain", title: "", id: 0x980913, type: .integer, maximum: 100),
    ]

    private static func controls(besides names: String...) -> [CaptureControl] {
        let rest = driver.filter { !names.contains($0.name) }
        return rest + ExposureMetering.controls(beside: rest)
    }

    private static let values: [String: ControlValue] = [
        "auto_exposure": .integer(3), "exposure_time_absolute": .integer(100), "gain": .integer(0),
        "exposure_point_x": .integer(5000), "exposure_point_y": .integer(5000), "exposure_metering": .boolean(false),
        "adjusting_exposure": .boolean(false),
    ]

    private func set(
        _ text: String, _ changes: [String: ControlValue] = [:], _ controls: [CaptureControl] = controls(),
        words: [String: String] = [:]
    ) throws -> Set<String> {
        var description = SampleDevice.description
        description.controls = controls
        var current = SampleDevice.current
        current.controls = Self.values.merging(changes) { $1 }
        current.words = words
        let request = ConfigurationChange(device: "cam0", controls: try JSONValue(parsing: text).object ?? [:])
        let plan = try ConfigurationPlanner(description: description).plan(
            request, path: "", current: current, mode: .exact)
        return Set(plan.controls.map { "\($0.name)=\($0.value.json)" })
    }

    @Test func whoCanBeDrivenHasAPoint() {
        let map = CameraControlMap(controls: Self.controls())
        #expect(map.supports["exposurePointOfInterest"] == true)
        #expect(map.supports["exposureMode"] == ["locked", "autoExpose", "continuousAutoExposure", "custom"])
        // By hand only: the bus exposes it.
        let byHand = CameraControlMap(controls: Self.controls(besides: "auto_exposure"))
        #expect(byHand.supports["exposureMode"] == ["locked", "autoExpose", "continuousAutoExposure", "custom"])
        for missing in [["exposure_time_absolute"], ["exposure_time_absolute", "auto_exposure"]] {
            let rest = Self.driver.filter { !missing.contains($0.name) }
            #expect(ExposureMetering.controls(beside: rest).isEmpty)
        }
        // A driver that can be asked to do it once, and one that can't be told to leave the exposure alone.
        let own = CaptureControl(name: "x", title: "", id: 0x9A100C, type: .button)
        #expect(ExposureMetering.controls(beside: Self.driver + [own]).isEmpty)
        var automatic = Self.driver
        automatic[0].menu[1] = nil
        #expect(ExposureMetering.controls(beside: automatic).isEmpty)
    }

    @Test func aDriversOwnPointIsTheDrivers() throws {
        let points = [("x", UInt32(0x9A1003)), ("y", 0x9A1004)].map { side, id in
            CaptureControl(name: "exposure_point_\(side)", title: "", id: id, type: .integer, maximum: 10_000)
        }
        let all = Self.driver + points
        let controls = all + ExposureMetering.controls(beside: all)
        #expect(controls.filter { $0.id == 0x9A1003 }.count == 1)
        #expect(
            try set(
                #"{"exposurePointOfInterest":{"x":0.2,"y":0.5},"exposureMode":"continuousAutoExposure"}"#, [:],
                controls)
                == [
                    "exposure_point_x=2000", "exposure_point_y=5000", "auto_exposure=3", "exposure_metering=false",
                ])
        #expect(try set(#"{"exposureMode":"autoExpose"}"#, [:], controls).contains("auto_exposure_start=true"))
        let values = CameraControlMap(controls: controls).values(Self.values)
        #expect(values["adjustingExposure"] == .null && values["exposureMode"] == "continuousAutoExposure")
        // Without frames that can be metered the point is there all the same.
        let map = CameraControlMap(controls: controls, isConvertible: false)
        #expect(map.supports["exposurePointOfInterest"] == true)
        #expect(map.supports["exposureMode"] == ["locked", "continuousAutoExposure", "custom"])
    }

    @Test func framesThatCannotBeMeteredHaveNone() {
        let map = CameraControlMap(controls: Self.controls(), isConvertible: false)
        #expect(map.supports["exposurePointOfInterest"] == false && map.supports["adjustingExposure"] == false)
        #expect(map.supports["exposureMode"] == ["locked", "continuousAutoExposure", "custom"])
        var description = SampleDevice.description
        description.controls = Self.controls()
        // f6 is H.264.
        #expect(description.cameraControls(formatID: "f6").supports["exposurePointOfInterest"] == false)
        #expect(description.cameraControls(formatID: "f2").supports["exposurePointOfInterest"] == true)
    }

    @Test func inTheMiddleTheCameraExposesElsewhereTheBusDoes() throws {
        #expect(
            try set(#"{"exposureMode":"continuousAutoExposure"}"#) == ["auto_exposure=3", "exposure_metering=false"])
        #expect(
            try set(#"{"exposurePointOfInterest":{"x":0.2,"y":0.5},"exposureMode":"continuousAutoExposure"}"#) == [
                "exposure_point_x=2000", "exposure_point_y=5000", "auto_exposure=1", "exposure_metering=true",
            ])
        let metering: [String: ControlValue] = [
            "auto_exposure": .integer(1), "exposure_metering": .boolean(true), "exposure_point_x": .integer(2000),
        ]
        #expect(
            try set(#"{"exposurePointOfInterest":{"x":0.5,"y":0.5},"exposureMode":"continuousAutoExposure"}"#, metering)
                == [
                    "exposure_point_x=5000", "exposure_point_y=5000", "auto_exposure=3", "exposure_metering=false",
                ])
        // A point alone counts where the exposure is automatic, and waits for it where not.
        #expect(
            try set(#"{"exposurePointOfInterest":{"x":0.2,"y":0.5}}"#) == [
                "exposure_point_x=2000", "exposure_point_y=5000", "auto_exposure=1", "exposure_metering=true",
            ])
        #expect(
            try set(#"{"exposurePointOfInterest":{"x":0.2,"y":0.5}}"#, ["auto_exposure": .integer(1)]) == [
                "exposure_point_x=2000", "exposure_point_y=5000",
            ])
        #expect(
            try set(#"{"exposureMode":"continuousAutoExposure"}"#, [:], Self.controls(besides: "auto_exposure"))
                == ["exposure_metering=true"])
    }

    @Test func onceAndByHand() throws {
        #expect(
            try set(#"{"exposureMode":"autoExpose"}"#) == [
                "auto_exposure=1", "exposure_metering=false", "auto_exposure_start=true",
            ])
        let metering: [String: ControlValue] = ["auto_exposure": .integer(1), "exposure_metering": .boolean(true)]
        #expect(
            try set(#"{"exposureMode":"locked"}"#, metering) == ["auto_exposure=1", "exposure_metering=false"])
        var held = Self.controls()
        for index in held.indices where ExposureMetering.isHeld(held[index]) { held[index].flags.insert(.inactive) }
        #expect(
            try set(#"{"exposureDuration":0.01}"#, metering, held) == [
                "auto_exposure=1", "exposure_metering=false", "exposure_time_absolute=100",
            ])
        let error = #expect(throws: BusError.self) { try set(#"{"gain":5}"#, metering, held) }
        #expect(error?.reason == .controlBusy)
    }

    @Test func readsAsTheModelSays() {
        let map = CameraControlMap(controls: Self.controls())
        func read(_ changes: [String: ControlValue], _ words: [String: String] = [:]) -> [String: JSONValue] {
            map.values(Self.values.merging(changes) { $1 }, words: words)
        }
        let byHand = ControlValue.integer(1)
        // What the camera does by itself isn't seen.
        #expect(read([:])["exposureMode"] == "continuousAutoExposure" && read([:])["adjustingExposure"] == .null)
        let metering = read(["auto_exposure": byHand, "exposure_metering": .boolean(true)])
        #expect(metering["exposureMode"] == "continuousAutoExposure" && metering["adjustingExposure"] == false)
        let once = ["exposureMode": "locked"]
        let adjusting = read(["auto_exposure": byHand, "adjusting_exposure": .boolean(true)], once)
        #expect(adjusting["exposureMode"] == "autoExpose" && adjusting["adjustingExposure"] == true)
        #expect(read(["auto_exposure": byHand], once)["exposureMode"] == "locked")
        #expect(
            read(["exposure_point_x": .integer(2500)])["exposurePointOfInterest"] == [
                "x": .number(0.25), "y": .number(0.5),
            ])
    }

    @Test func whoNeverExposesByItselfHasABound() throws {
        #expect(CameraControlMap(controls: Self.controls()).kind(.activeMaxExposureDuration) == nil)
        let byHand = Self.controls(besides: "auto_exposure")
        let map = CameraControlMap(controls: byHand)
        #expect(map.kind(.activeMaxExposureDuration) == .number(minimum: 0.0003, maximum: 0.2047))
        let set = try set(
            #"{"activeMaxExposureDuration":0.01}"#, ["auto_exposure_longest": .integer(204_700)], byHand)
        #expect(set == ["auto_exposure_longest=10000"])
        let frame = FrameDuration(framesPerSecond: 30)
        #expect(map.longestExposure(within: frame, ["auto_exposure_longest": .integer(10_000)]) == 100)
        #expect(map.longestExposure(within: frame, ["auto_exposure_longest": .integer(204_700)]) == 333)
        // Nobody meters what is no picture.
        #expect(CameraControlMap(controls: byHand, isConvertible: false).kind(.activeMaxExposureDuration) == nil)
    }

    @Test func anExposureLeavesAFrameItsTime() {
        var traits = FormatTraits()
        let map = { CameraControlMap(controls: Self.controls(), traits: $0) }
        #expect(map(traits).longestExposure(within: FrameDuration(framesPerSecond: 30)) == 333)
        #expect(map(traits).longestExposure(within: nil) == nil)
        traits.maxExposureDuration = 0.01
        #expect(map(traits).longestExposure(within: FrameDuration(framesPerSecond: 30)) == 100)
    }
}
