import CV4L2
import CaptureCore
import CaptureSources
import Glibc
import Testing
import Video4Linux

/// Points of interest of a driver with a region of interest, as uvcvideo has it since Linux 6.16.
@Suite struct V4L2RegionOfInterestTests {
    private final class Camera {
        var region = v4l2_rect(left: 0, top: 0, width: 1000, height: 600)
        var mask: Int32 = 0
        var functions: Int64 = 9
        var knowsItsRange = true
    }

    private static let (rectangle, automatic) = (UInt32(0x981AE1), UInt32(0x981AE2))
    private let camera = Camera()
    private let device = V4L2ScriptedDevice()

    private func open() throws -> (V4L2Camera, [CaptureControl]) {
        let camera = camera
        device.offers("YUYV")
        device.offers(width: 640, height: 360)
        device.on(.queryCapability) { (answer: inout v4l2_capability) in
            answer.capabilities = UInt32(V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING)
            withUnsafeMutableBytes(of: &answer.driver) { $0.copyBytes(from: "scripted".utf8) }
            withUnsafeMutableBytes(of: &answer.bus_info) { $0.copyBytes(from: "nowhere".utf8) }
            return 0
        }
        device.on(.queryControl) { (answer: inout v4l2_query_ext_ctrl) in
            let asked = answer.id & 0x3FFF_FFFF
            let isNext = asked != answer.id
            let known = [Self.rectangle, Self.automatic]
            guard let id = known.first(where: { isNext ? $0 > asked : $0 == asked }) else { return EINVAL }
            answer.id = id
            (answer.elems, answer.elem_size) = (1, id == Self.rectangle ? 16 : 4)
            if id == Self.rectangle {
                answer.type = 0x0107
                answer.flags = UInt32(V4L2_CTRL_FLAG_HAS_PAYLOAD)
            } else {
                answer.type = V4L2_CTRL_TYPE_BITMASK.rawValue
                answer.maximum = camera.functions
            }
            let name = id == Self.rectangle ? "Region of Interest Rectangle" : "Region of Interest Auto Ctrls"
            withUnsafeMutableBytes(of: &answer.name) { $0.copyBytes(from: name.utf8.prefix(31)) }
            return 0
        }
        device.on(.getControls) { (list: inout v4l2_ext_controls) in
            guard let control = list.controls else { return EINVAL }
            guard control.pointee.id == Self.rectangle else {
                control.pointee.value = camera.mask
                return 0
            }
            var answer = camera.region
            switch list.which {
            case 0x0F02_0000: answer = v4l2_rect(left: 0, top: 0, width: 10, height: 10)
            case 0x0F03_0000: answer = v4l2_rect(left: 0, top: 0, width: 1000, height: 600)
            default: break
            }
            if list.which != 0, !camera.knowsItsRange { return EINVAL }
            control.pointee.ptr?.storeBytes(of: answer, as: v4l2_rect.self)
            return 0
        }
        device.on(.setControls) { (list: inout v4l2_ext_controls) in
            guard let control = list.controls else { return EINVAL }
            if control.pointee.id == Self.rectangle {
                camera.region = control.pointee.ptr?.load(as: v4l2_rect.self) ?? camera.region
            } else {
                camera.mask = control.pointee.value
            }
            return 0
        }
        device.on(.getFormat) { (answer: inout v4l2_format) in
            (answer.fmt.pix.width, answer.fmt.pix.height, answer.fmt.pix.pixelformat) = (640, 360, fourCC("YUYV"))
            return 0
        }
        let identity = DeviceIdentity(
            uniqueID: "scripted", localizedName: "Scripted", type: .external, position: .external,
            node: "/dev/scripted", driver: "scripted", bus: "nowhere")
        let opened = V4L2Camera(identity) { [device] _ throws(V4L2Error) in device }
        return (opened, try opened.open().controls)
    }

    @Test func aPointIsARegionAroundIt() throws {
        let (opened, controls) = try open()
        let map = CameraControlMap(controls: controls)
        #expect(map.kind(.exposurePointOfInterest) == .point && map.kind(.focusPointOfInterest) == .point)
        #expect(try opened.controlValues()["exposure_point_x"] == .integer(5000))
        try opened.setControl("exposure_point_x", to: .integer(2500))
        try opened.setControl("exposure_point_y", to: .integer(5000))
        #expect(camera.region.left == 150 && camera.region.width == 200)
        #expect(camera.region.top == 240 && camera.region.height == 120 && camera.mask == 1)
        #expect(try opened.controlValues()["exposure_point_x"] == .integer(2500))
        #expect(try opened.controlValues()["focus_point_x"] == .integer(5000))
        // At the edge it stays inside.
        try opened.setControl("exposure_point_x", to: .integer(10_000))
        #expect(camera.region.left == 800 && camera.region.width == 200)
        // In the middle it is all of it.
        try opened.setControl("exposure_point_x", to: .integer(5000))
        #expect(camera.region.left == 0 && camera.region.width == 1000 && camera.region.height == 600)
        let error = #expect(throws: SourceError.self) {
            try opened.setControl("exposure_point_x", to: .integer(10_001))
        }
        #expect(error?.errno == ERANGE)
    }

    @Test func thereIsOneRegionForAll() throws {
        let (opened, _) = try open()
        for name in ["focus_point", "exposure_point"] {
            try opened.setControl("\(name)_x", to: .integer(3000))
            try opened.setControl("\(name)_y", to: .integer(3000))
        }
        // The same for both.
        #expect(camera.mask == 9)
        #expect(try opened.controlValues()["focus_point_y"] == .integer(3000))
        try opened.setControl("exposure_point_x", to: .integer(8000))
        #expect(camera.mask == 1)
        #expect(try opened.controlValues()["focus_point_x"] == .integer(5000))
    }

    @Test func whatACameraCannotHaveIsNotThere() throws {
        camera.functions = 8
        let (_, controls) = try open()
        #expect(
            controls.contains { $0.name == "focus_point_x" } && !controls.contains { $0.name == "exposure_point_x" })
        camera.knowsItsRange = false
        #expect(try !open().1.contains { $0.name == "focus_point_x" })
    }
}
