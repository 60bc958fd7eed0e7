import BusProtocol
import JSON
import Testing

@testable import CaptureCore

/// The driver's selection as a control of the capture model.
@Suite struct CropRectangleTests {
    private static let bounds = PixelRectangle(x: -4, y: 0, width: 1936, height: 1096)
    private static let whole = PixelRectangle(x: 0, y: 8, width: 1920, height: 1080)

    private static func description(zoom: Bool = false) -> DeviceDescription {
        var description = SampleDevice.description
        description.controls.append(CropRectangleControl.control(bounds: bounds, defaultRectangle: whole))
        if zoom {
            description.controls.append(
                CaptureControl(
                    name: "zoom_by_crop", title: "Zoom by Crop", id: CameraControlID.cropZoom, type: .integer,
                    minimum: 100, maximum: 400, flags: [.volatile]))
        }
        return description
    }

    private static func plan(
        _ controls: [String: JSONValue], zoom: Bool = false, isRamping: Bool = false,
        mode: ConfigurationMode = .exact
    ) throws(BusError) -> ConfigurationPlan {
        var current = SampleDevice.current
        current.isRampingZoom = isRamping
        return try ConfigurationPlanner(description: description(zoom: zoom)).plan(
            ConfigurationChange(device: "cam0", controls: controls), path: "", current: current, mode: mode)
    }

    @Test func itIsDescribedWithBoundsAndDefault() throws {
        let map = Self.description().cameraControls(formatID: "f0")
        let control = try #require(map.controls.first { $0.name == .cropRectangle })
        let json = control.json(value: nil)
        #expect(json["type"] == "rectangle" && json["sources"] == ["crop_rectangle"])
        #expect(json["bounds"] == ["x": -4, "y": 0, "width": 1936, "height": 1096])
        #expect(json["defaultRectangle"] == ["x": 0, "y": 8, "width": 1920, "height": 1080])
        #expect(map.supports["cropRectangle"] == true)
        #expect(SampleDevice.description.cameraControls(formatID: "f0").supports["cropRectangle"] == false)
        #expect(
            map.values(["crop_rectangle": .integers([2, 4, 64, 48])])["cropRectangle"]
                == ["x": 2, "y": 4, "width": 64, "height": 48])
        let own = try #require(Self.description().controls.last)
        #expect(try CaptureControl(json: own.json(value: nil)) == own)
        #expect(own.json(value: .integers([2, 4, 64, 48]))["value"] == [2, 4, 64, 48])
    }

    @Test func oneChangeSetsAllFourSides() throws {
        let plan = try Self.plan(["cropRectangle": ["x": -4, "y": 0, "width": 640, "height": 480]])
        #expect(plan.controls == [PlannedControl(name: "crop_rectangle", value: .integers([-4, 0, 640, 480]))])
        #expect(plan.implied == ["crop_rectangle"] && plan.cameraControls == ["cropRectangle"])
        // Under the driver's name, as a saved profile has it.
        #expect(try Self.plan(["crop_rectangle": [-4, 0, 640, 480]]).controls == plan.controls)
    }

    @Test(arguments: [ConfigurationMode.exact, .nearest])
    func outOfBoundsIsRefusedWithTheBounds(_ mode: ConfigurationMode) {
        for (x, y, width, height) in [
            (-5, 0, 64, 48), (1900, 0, 64, 48), (0, 1090, 64, 48), (0, 0, 0, 1), (0, 0, 1, -1),
        ] {
            let asked: JSONValue = [
                "x": JSONValue(x), "y": JSONValue(y), "width": JSONValue(width), "height": JSONValue(height),
            ]
            let numbers: JSONValue = [JSONValue(x), JSONValue(y), JSONValue(width), JSONValue(height)]
            for controls in [["cropRectangle": asked], ["crop_rectangle": numbers]] {
                let error = #expect(throws: BusError.self) { try Self.plan(controls, mode: mode) }
                #expect(error?.reason == .controlOutOfRange)
                #expect(error?.data["bounds"] == Self.bounds.json)
                #expect(error?.message.contains("1936x1096 at -4,0") == true)
            }
        }
        for wrong: JSONValue in [[0, 0, 64, 48], 3, ["x": 0], ["x": 0, "y": 0, "width": 1.5, "height": 2]] {
            let error = #expect(throws: BusError.self) { try Self.plan(["cropRectangle": wrong], mode: mode) }
            #expect(error?.reason == .invalidParams)
        }
        let missing = #expect(throws: BusError.self) {
            try ConfigurationPlanner(description: SampleDevice.description).plan(
                ConfigurationChange(
                    device: "cam0", controls: ["cropRectangle": ["x": 0, "y": 0, "width": 8, "height": 8]]), path: "",
                current: SampleDevice.current, mode: mode)
        }
        #expect(missing?.reason == .controlUnsupported)
    }

    @Test func theDriverHasOneSelection() {
        let part: JSONValue = ["x": 0, "y": 0, "width": 64, "height": 48]
        let both = #expect(throws: BusError.self) {
            try Self.plan(["cropRectangle": part, "videoZoomFactor": 2], zoom: true)
        }
        #expect(both?.reason == .controlBusy && both?.data["control"] == "cropRectangle")
        let ramping = #expect(throws: BusError.self) {
            try Self.plan(["cropRectangle": part], zoom: true, isRamping: true)
        }
        #expect(ramping?.reason == .controlBusy && ramping?.message.contains("device.cancelZoomRamp") == true)
        // A zoom of another kind has nothing to do with it.
        #expect(throws: Never.self) { try Self.plan(["cropRectangle": part], isRamping: true) }
    }
}
