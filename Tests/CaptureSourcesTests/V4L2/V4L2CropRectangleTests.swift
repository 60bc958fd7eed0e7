import BusProtocol
import CV4L2
import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import Testing
import Video4Linux

/// A driver's selection, as a control.
@Suite struct V4L2CropRectangleTests {
    private let sensor = V4L2CroppingSensor()

    private func rectangle(_ camera: V4L2Camera) throws -> PixelRectangle? {
        try camera.controlValues()["crop_rectangle"].flatMap { PixelRectangle($0) }
    }

    @Test func theDriversBoundsDefaultAndRounding() throws {
        let camera = sensor.camera()
        let control = try #require(try camera.open().controls.first { $0.name == "crop_rectangle" })
        #expect(control.type == .rectangle && control.flags == [.modifyLayout])
        #expect(control.bounds == PixelRectangle(x: 0, y: 0, width: 1936, height: 1096))
        #expect(control.defaultRectangle == PixelRectangle(x: 8, y: 8, width: 1920, height: 1080))
        #expect(try rectangle(camera) == control.defaultRectangle)
        try camera.setControl("crop_rectangle", to: .integers([100, 50, 641, 480]))
        #expect(sensor.crop.left == 100 && sensor.crop.top == 50 && sensor.crop.width == 640)
        #expect(try rectangle(camera) == PixelRectangle(x: 100, y: 50, width: 640, height: 480))
        for outside in [[-1, 0, 64, 48], [1930, 0, 8, 8], [0, 0, 0, 8], [0, 0, 1936, 1097], [0, 0, Int64.max, 8]] {
            let error = #expect(throws: SourceError.self) {
                try camera.setControl("crop_rectangle", to: .integers(outside))
            }
            #expect(error?.errno == ERANGE)
        }
        #expect(sensor.crop.width == 640)
    }

    @Test func aDriverThatDoesNotScaleHasPicturesOfThatSizeAndNoZoom() throws {
        sensor.scales = false
        let camera = sensor.camera()
        #expect(try camera.open().controls.map(\.name) == ["zoom_by_crop", "crop_rectangle"])
        try camera.setControl("crop_rectangle", to: .integers([0, 0, 320, 200]))
        #expect(try camera.activeFormat().dimensions == Dimensions(width: 320, height: 200))
        #expect(try camera.controls().map(\.name) == ["crop_rectangle"])
        // Known for good.
        camera.close()
        #expect(try camera.open().controls.map(\.name) == ["crop_rectangle"])
        let stream = try camera.startStreaming()
        #expect(stream.layout.dimensions == Dimensions(width: 320, height: 200))
        #expect(stream.layout.description.extensions.pixelAspectRatio == .one)
        try camera.stopStreaming()
    }

    /// A part of another shape is stretched to the picture's, and its header says so.
    @Test(arguments: [
        ([Int64(8), 8, 1920, 1080], "1:1"), ([0, 0, 960, 540], "1:1"), ([0, 0, 960, 541], "1:1"),
        ([0, 0, 960, 1080], "1:2"), ([0, 0, 1080, 1080], "9:16"), ([0, 0, 1920, 540], "2:1"),
    ])
    func whatIsStretchedIsDescribed(_ part: [Int64], _ ratio: String) throws {
        let camera = sensor.camera()
        _ = try camera.open()
        try camera.setControl("crop_rectangle", to: .integers(part))
        #expect(try camera.formatDescription().extensions.pixelAspectRatio.text(":") == ratio)
        let stream = try camera.startStreaming()
        #expect(stream.layout.description.extensions.pixelAspectRatio.text(":") == ratio)
        try camera.stopStreaming()
    }

    /// One that only tells its rectangle; one that is busy keeps its control.
    @Test func aDriverWithoutTheRequestHasNoControl() throws {
        let camera = sensor.camera()
        _ = try camera.open()
        sensor.refusal = EBUSY
        let busy = #expect(throws: SourceError.self) {
            try camera.setControl("crop_rectangle", to: .integers([0, 0, 64, 48]))
        }
        #expect(busy?.errno == EBUSY)
        #expect(try camera.controls().contains { $0.name == "crop_rectangle" })
        sensor.refusal = ENOTTY
        let error = #expect(throws: SourceError.self) {
            try camera.setControl("crop_rectangle", to: .integers([0, 0, 64, 48]))
        }
        #expect(error?.kind == .refused && error?.control == "crop_rectangle")
        #expect(try !camera.controls().contains { $0.name == "crop_rectangle" })
        #expect(try camera.controlValues()["crop_rectangle"] == nil)
    }

    /// vivid's webcams and uvcvideo.
    @Test(arguments: [ENOTTY, EINVAL, ENODATA])
    func aDriverWithoutASelectionHasNoControl(_ number: Int32) throws {
        sensor.device.on(.getSelection) { (_: inout v4l2_selection) in number }
        #expect(try sensor.camera().open().controls.isEmpty)
    }
}
