import CV4L2
import CaptureCore
import CaptureSources
import Glibc
import Testing
import Video4Linux

/// A zoom of a driver that has none, by what is cropped of the sensor's picture.
@Suite struct V4L2CropZoomTests {
    private let sensor = V4L2CroppingSensor()

    private func zoom(_ camera: V4L2Camera) throws -> ControlValue? { try camera.controlValues()["zoom_by_crop"] }

    @Test func cropsTheMiddleAndTellsWhatBecameOfIt() throws {
        let camera = sensor.camera()
        let controls = try camera.open().controls
        #expect(controls.map(\.name) == ["zoom_by_crop", "crop_rectangle"])
        #expect(try zoom(camera) == .integer(100))
        try camera.setControl("zoom_by_crop", to: .integer(400))
        #expect(sensor.crop.left == 8 + 720 && sensor.crop.top == 8 + 405)
        #expect(sensor.crop.width == 480 && sensor.crop.height == 270)
        #expect(try zoom(camera) == .integer(400))
        let map = CameraControlMap(controls: controls)
        #expect(map.kind(.videoZoomFactor) == .number(minimum: 1, maximum: 4))
        #expect(map.zoomFactor(try camera.controlValues()) == 4)
        try camera.setControl("zoom_by_crop", to: .integer(100))
        #expect(sensor.crop.left == 8 && sensor.crop.width == 1920)
        let error = #expect(throws: SourceError.self) { try camera.setControl("zoom_by_crop", to: .integer(401)) }
        #expect(error?.errno == ERANGE)
    }

    /// What is not scaled is only less: the picture would have another size.
    @Test func aDriverThatDoesNotScaleIsPutBackAndHasNoZoom() throws {
        sensor.scales = false
        let camera = sensor.camera()
        #expect(try camera.open().controls.count == 2)
        let error = #expect(throws: SourceError.self) { try camera.setControl("zoom_by_crop", to: .integer(200)) }
        #expect(error?.kind == .refused && error?.control == "zoom_by_crop")
        #expect(sensor.crop.width == 1920 && sensor.format.width == 640 && sensor.format.height == 360)
        #expect(try camera.controls().map(\.name) == ["crop_rectangle"])
        #expect(try zoom(camera) == nil)
    }

    @Test func aZoomOfItsOwnComesFirst() throws {
        sensor.hasOwnZoom = true
        #expect(try sensor.camera().open().controls.map(\.name) == ["zoom_absolute", "crop_rectangle"])
    }
}
