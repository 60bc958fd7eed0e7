import CV4L2
import CaptureCore
import CaptureSources
import Glibc
import Testing
import Video4Linux

/// A zoom of a driver that has none, by what is cropped of the sensor's picture.
@Suite struct V4L2CropZoomTests {
    private final class Sensor {
        var crop = v4l2_rect(left: 8, top: 0, width: 1920, height: 1080)
        var format = (width: UInt32(640), height: UInt32(360))
        var scales = true
    }

    private let sensor = Sensor()
    private let device = V4L2ScriptedDevice()

    private func camera(ownZoom: Bool = false) throws -> V4L2Camera {
        let (sensor, whole) = (sensor, sensor.crop)
        device.offers("YUYV")
        device.offers(width: 640, height: 360)
        device.on(.queryCapability) { (answer: inout v4l2_capability) in
            answer.capabilities = UInt32(V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING)
            withUnsafeMutableBytes(of: &answer.driver) { $0.copyBytes(from: "scripted".utf8) }
            withUnsafeMutableBytes(of: &answer.bus_info) { $0.copyBytes(from: "nowhere".utf8) }
            return 0
        }
        device.on(.queryControl) { (answer: inout v4l2_query_ext_ctrl) in
            guard ownZoom, answer.id & 0x3FFF_FFFF < 0x009A_090D else { return EINVAL }
            answer.id = 0x009A_090D
            answer.type = V4L2_CTRL_TYPE_INTEGER.rawValue
            (answer.minimum, answer.maximum, answer.step, answer.elems) = (100, 200, 1, 1)
            withUnsafeMutableBytes(of: &answer.name) { $0.copyBytes(from: "Zoom, Absolute".utf8) }
            return 0
        }
        device.on(.getSelection) { (answer: inout v4l2_selection) in
            answer.r = answer.target == UInt32(V4L2_SEL_TGT_CROP_DEFAULT) ? whole : sensor.crop
            return 0
        }
        device.on(.setSelection) { (answer: inout v4l2_selection) in
            // To whole pairs of pixels, as sensors crop.
            answer.r.width = answer.r.width / 2 * 2
            sensor.crop = answer.r
            if !sensor.scales { sensor.format = (answer.r.width, answer.r.height) }
            return 0
        }
        for request in [V4L2Request.getFormat, .setFormat] {
            device.on(request) { (answer: inout v4l2_format) in
                if request == .setFormat { sensor.format = (answer.fmt.pix.width, answer.fmt.pix.height) }
                answer.fmt.pix.width = sensor.format.width
                answer.fmt.pix.height = sensor.format.height
                answer.fmt.pix.pixelformat = fourCC("YUYV")
                return 0
            }
        }
        let identity = DeviceIdentity(
            uniqueID: "scripted", localizedName: "Scripted", type: .external, position: .external,
            node: "/dev/scripted", driver: "scripted", bus: "nowhere")
        return V4L2Camera(identity) { [device] _ throws(V4L2Error) in device }
    }

    @Test func cropsTheMiddleAndTellsWhatBecameOfIt() throws {
        let camera = try camera()
        let controls = try camera.open().controls
        #expect(controls.map(\.name) == ["zoom_by_crop"])
        #expect(try camera.controlValues() == ["zoom_by_crop": .integer(100)])
        try camera.setControl("zoom_by_crop", to: .integer(400))
        #expect(sensor.crop.left == 8 + 720 && sensor.crop.top == 405)
        #expect(sensor.crop.width == 480 && sensor.crop.height == 270)
        #expect(try camera.controlValues() == ["zoom_by_crop": .integer(400)])
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
        let camera = try camera()
        #expect(try camera.open().controls.count == 1)
        let error = #expect(throws: SourceError.self) { try camera.setControl("zoom_by_crop", to: .integer(200)) }
        #expect(error?.kind == .refused && error?.control == "zoom_by_crop")
        #expect(sensor.crop.width == 1920 && sensor.format.width == 640 && sensor.format.height == 360)
        #expect(try camera.controls().isEmpty)
        #expect(try camera.controlValues().isEmpty)
    }

    @Test func aZoomOfItsOwnComesFirst() throws {
        #expect(try camera(ownZoom: true).open().controls.map(\.name) == ["zoom_absolute"])
        #expect(device.calls["VIDIOC_G_SELECTION"] == nil)
    }
}
