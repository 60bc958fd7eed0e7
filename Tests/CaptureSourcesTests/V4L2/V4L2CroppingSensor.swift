import CV4L2
import CaptureCore
import CaptureSources
import Glibc
import Video4Linux

/// A scripted driver that takes a part of its sensor's picture, in whole pairs of pixels, as sensors do.
final class V4L2CroppingSensor {
    static let bounds = v4l2_rect(left: 0, top: 0, width: 1936, height: 1096)
    static let whole = v4l2_rect(left: 8, top: 8, width: 1920, height: 1080)

    let device = V4L2ScriptedDevice()
    var crop = V4L2CroppingSensor.whole
    var format = (width: UInt32(640), height: UInt32(360))
    /// The picture keeps its size; else it has that of the rectangle.
    var scales = true
    /// What `VIDIOC_S_SELECTION` fails with.
    var refusal: Int32 = 0
    var hasOwnZoom = false

    init() {
        device.offers("YUYV")
        device.offers(width: 640, height: 360)
        device.on(.queryCapability) { (answer: inout v4l2_capability) in
            answer.capabilities = UInt32(V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING)
            withUnsafeMutableBytes(of: &answer.driver) { $0.copyBytes(from: "scripted".utf8) }
            withUnsafeMutableBytes(of: &answer.bus_info) { $0.copyBytes(from: "nowhere".utf8) }
            return 0
        }
        device.on(.queryControl) { [unowned self] (answer: inout v4l2_query_ext_ctrl) in
            guard hasOwnZoom, answer.id & 0x3FFF_FFFF < 0x009A_090D else { return EINVAL }
            answer.id = 0x009A_090D
            answer.type = V4L2_CTRL_TYPE_INTEGER.rawValue
            (answer.minimum, answer.maximum, answer.step, answer.elems) = (100, 200, 1, 1)
            withUnsafeMutableBytes(of: &answer.name) { $0.copyBytes(from: "Zoom, Absolute".utf8) }
            return 0
        }
        device.on(.getSelection) { [unowned self] (answer: inout v4l2_selection) in
            switch answer.target {
            case UInt32(V4L2_SEL_TGT_CROP): answer.r = crop
            case UInt32(V4L2_SEL_TGT_CROP_DEFAULT): answer.r = Self.whole
            case UInt32(V4L2_SEL_TGT_CROP_BOUNDS): answer.r = Self.bounds
            default: return EINVAL
            }
            return 0
        }
        device.on(.setSelection) { [unowned self] (answer: inout v4l2_selection) in
            if refusal != 0 { return refusal }
            answer.r.width = answer.r.width / 2 * 2
            crop = answer.r
            if !scales { format = (answer.r.width, answer.r.height) }
            return 0
        }
        for request in [V4L2Request.getFormat, .setFormat] {
            device.on(request) { [unowned self] (answer: inout v4l2_format) in
                if request == .setFormat { format = (answer.fmt.pix.width, answer.fmt.pix.height) }
                (answer.fmt.pix.width, answer.fmt.pix.height) = format
                answer.fmt.pix.pixelformat = fourCC("YUYV")
                (answer.fmt.pix.bytesperline, answer.fmt.pix.sizeimage) = (
                    format.width * 2, format.width * format.height * 2
                )
                return 0
            }
        }
        device.on(.requestBuffers) { (_: inout v4l2_requestbuffers) in 0 }
        device.on(.queueBuffer) { (_: inout v4l2_buffer) in 0 }
        device.on(.streamOn) { (_: inout CInt) in 0 }
        device.on(.streamOff) { (_: inout CInt) in 0 }
    }

    func camera() -> V4L2Camera {
        let identity = DeviceIdentity(
            uniqueID: "scripted", localizedName: "Scripted", type: .external, position: .external,
            node: "/dev/scripted", driver: "scripted", bus: "nowhere")
        return V4L2Camera(identity) { [device] _ throws(V4L2Error) in device }
    }
}
