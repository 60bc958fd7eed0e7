import BusProtocol
import JSON
import Testing

@testable import CaptureCore

/// Cameras that can't zoom, and are zoomed all the same.
@Suite struct DigitalZoomTests {
    private static func driver(_ id: UInt32, _ range: ClosedRange<Int64>, _ flags: Set<ControlFlag> = [])
        -> CaptureControl
    {
        CaptureControl(
            name: "zoom", title: "", id: id, type: .integer, minimum: range.lowerBound, maximum: range.upperBound,
            flags: flags)
    }

    private static func description(_ formats: [CaptureFormat]? = nil, limit: Double = 4) throws -> DeviceDescription {
        var description = SampleDevice.description
        if let formats { description.formats = formats }
        description.controls.append(
            try #require(DigitalZoom.control(beside: description.controls, limit: limit)))
        description.zoomLimit = limit
        return description
    }

    private static func current(_ format: String, _ zoom: Int64, _ description: DeviceDescription) throws
        -> DeviceConfiguration
    {
        let row = try #require(description.formats.first { $0.id == format })
        var current = SampleDevice.current
        (current.formatID, current.format) = (
            format, FormatSelection(pixelFormat: row.pixelFormat, dimensions: row.dimensions)
        )
        current.controls[DigitalZoom.name] = .integer(zoom)
        return current
    }

    @Test func onlyWhereTheDriverCant() {
        #expect(DigitalZoom.control(beside: [], limit: 4)?.maximum == 4000)
        #expect(DigitalZoom.control(beside: SampleDevice.controls, limit: 2.5)?.maximum == 2500)
        for id in [CameraControlID.zoom, CameraControlID.cropZoom] {
            #expect(DigitalZoom.control(beside: [Self.driver(id, 100...400)], limit: 4) == nil)
            // One that nobody can turn is none.
            #expect(DigitalZoom.control(beside: [Self.driver(id, 100...400, [.readOnly])], limit: 4) != nil)
            #expect(DigitalZoom.control(beside: [Self.driver(id, 100...400, [.disabled])], limit: 4) != nil)
        }
        // Of units that nobody knows, but the driver's own.
        #expect(DigitalZoom.control(beside: [Self.driver(CameraControlID.zoom, 0...10)], limit: 4) == nil)
        for limit in [1, 0, -3, 1.0001, Double.nan, .infinity] {
            #expect(DigitalZoom.control(beside: [], limit: limit) == nil)
        }
        #expect(DigitalZoom.control(beside: [], limit: 1000)?.maximum == 100_000)
    }

    @Test func itIsAZoomLikeAnyOther() throws {
        let map = try Self.description().cameraControls(formatID: "f0")
        #expect(map.kind(.videoZoomFactor) == .number(minimum: 1, maximum: 4))
        #expect(map.controls.first { $0.name == .videoZoomFactor }?.sources == ["digital_zoom"])
        let values = map.values(["digital_zoom": .integer(2000)])
        #expect(values["videoZoomFactor"] == 2 && values["zoomValue"] == .number(0.5))
        #expect(map.zoomSetting(1.2345)?.value == 1235)
    }

    @Test func asFarAsThePictureAllows() throws {
        let small = CaptureFormat(
            id: "f0", pixelFormat: .yuyv, dimensions: Dimensions(width: 64, height: 48), frameRates: [rate(30)])
        var bounded = small
        bounded.id = "f1"
        bounded.traits.videoMaxZoomFactor = 1.5
        var never = small
        never.id = "f2"
        never.traits.videoMaxZoomFactor = 1
        let description = try Self.description([small, bounded, never], limit: 10)
        #expect(description.cameraControls(formatID: "f0").videoMaxZoomFactor == 3)
        #expect(description.cameraControls(formatID: "f1").videoMaxZoomFactor == 1.5)
        #expect(description.cameraControls(formatID: "f2").kind(.videoZoomFactor) == nil)
        #expect(description.cameraControls(formatID: nil).videoMaxZoomFactor == 10)
    }

    @Test func whatNoPicturesAreMadeOfCannotBeZoomed() throws {
        let map = try Self.description().cameraControls(formatID: "f6")
        #expect(map.kind(.videoZoomFactor) == nil && map.kind(.rampingVideoZoom) == nil)
        #expect(map.supports["videoZoomFactor"] == false)
    }

    @Test func anotherFormatTakesTheFactorAlong() throws {
        let description = try Self.description()
        let planner = ConfigurationPlanner(description: description)
        func plan(_ format: String, from: String, _ zoom: Int64) throws -> ConfigurationPlan {
            try planner.plan(
                ConfigurationChange(device: "cam0", activeFormat: .id(format)), path: "",
                current: try Self.current(from, zoom, description), mode: .exact)
        }
        #expect(try plan("f1", from: "f0", 3000).controls.isEmpty)
        // H.264 is never zoomed.
        let toH264 = try plan("f6", from: "f0", 3000)
        #expect(toH264.controls.map(\.name) == ["digital_zoom"] && toH264.controls[0].value == .integer(1000))
        #expect(toH264.adjustments.contains { $0.path == "controls.videoZoomFactor" && $0.given == 1 })
        #expect(try plan("f6", from: "f0", 1000).controls.isEmpty)
        #expect(try plan("f0", from: "f6", 1000).controls.isEmpty)
    }
}
