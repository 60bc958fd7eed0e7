import CV4L2
import Glibc

/// A part of a picture, in pixels (`struct v4l2_rect`).
public struct V4L2Rectangle: Hashable, Sendable {
    public var left: Int32
    public var top: Int32
    public var width: UInt32
    public var height: UInt32

    public init(left: Int32, top: Int32, width: UInt32, height: UInt32) {
        self.left = left
        self.top = top
        self.width = width
        self.height = height
    }
}

/// What of a picture is meant (`V4L2_SEL_TGT_*`).
public enum V4L2SelectionTarget: UInt32, Hashable, Sendable {
    /// What of the sensor's picture is taken.
    case crop = 0x0000
    /// What of it is taken unless somebody says otherwise.
    case cropDefault = 0x0001
    /// Where that can be.
    case cropBounds = 0x0002
    /// Where in the buffer it is put.
    case compose = 0x0100
}

extension V4L2Device {
    /// What is selected now (`VIDIOC_G_SELECTION`); nil where the device can't say, or not with its present input.
    public func selection(
        _ type: V4L2BufferType, _ target: V4L2SelectionTarget
    ) throws(V4L2Error) -> V4L2Rectangle? {
        var answer = v4l2_selection()
        answer.type = type.code
        answer.target = target.rawValue
        switch attempt(.getSelection, &answer) {
        case 0:
            return V4L2Rectangle(
                left: answer.r.left, top: answer.r.top, width: answer.r.width, height: answer.r.height)
        case ENOTTY, EINVAL, ENODATA: return nil
        case let number: throw error(number, .getSelection)
        }
    }

    /// Selects what comes nearest to a part, and answers what that is (`VIDIOC_S_SELECTION`).
    @discardableResult
    public func setSelection(
        _ type: V4L2BufferType, _ target: V4L2SelectionTarget, to part: V4L2Rectangle
    ) throws(V4L2Error) -> V4L2Rectangle {
        var answer = v4l2_selection()
        answer.type = type.code
        answer.target = target.rawValue
        answer.r = v4l2_rect(left: part.left, top: part.top, width: part.width, height: part.height)
        try call(.setSelection, &answer)
        return V4L2Rectangle(left: answer.r.left, top: answer.r.top, width: answer.r.width, height: answer.r.height)
    }
}
