import CV4L2
import Glibc

/// Which value of a control is meant (`V4L2_CTRL_WHICH_*`).
public enum V4L2ControlWhich: UInt32, Hashable, Sendable {
    case current = 0
    /// The least and the largest, of controls whose range is no number. Kernels before 6.16 don't know them.
    case minimum = 0x0F02_0000
    case maximum = 0x0F03_0000
}

// Controls of rectangles (`V4L2_CTRL_TYPE_RECT`), which this module doesn't know by their description.
extension V4L2Device {
    /// A control's rectangle (`VIDIOC_G_EXT_CTRLS`); nil where there is no such control, or no such value of it.
    public func rectangle(control id: UInt32, _ which: V4L2ControlWhich) throws(V4L2Error) -> V4L2Rectangle? {
        var rectangle = v4l2_rect()
        switch exchange(.getControls, id, which, &rectangle) {
        case 0:
            return V4L2Rectangle(
                left: rectangle.left, top: rectangle.top, width: rectangle.width, height: rectangle.height)
        case EINVAL, ENOTTY, EACCES: return nil
        case let number: throw error(number, .getControls)
        }
    }

    /// Sets a control to a rectangle (`VIDIOC_S_EXT_CTRLS`); the driver takes what comes nearest.
    public func setRectangle(control id: UInt32, to part: V4L2Rectangle) throws(V4L2Error) {
        var rectangle = v4l2_rect(left: part.left, top: part.top, width: part.width, height: part.height)
        let number = exchange(.setControls, id, .current, &rectangle)
        if number != 0 { throw error(number, .setControls) }
    }

    private func exchange(
        _ request: V4L2Request, _ id: UInt32, _ which: V4L2ControlWhich, _ rectangle: inout v4l2_rect
    ) -> Int32 {
        withUnsafeMutablePointer(to: &rectangle) { rectangle in
            var control = v4l2_ext_control()
            control.id = id
            control.size = UInt32(MemoryLayout<v4l2_rect>.size)
            control.ptr = UnsafeMutableRawPointer(rectangle)
            return withUnsafeMutablePointer(to: &control) { control in
                var list = v4l2_ext_controls()
                list.which = which.rawValue
                list.count = 1
                list.controls = control
                return attempt(request, &list)
            }
        }
    }
}
