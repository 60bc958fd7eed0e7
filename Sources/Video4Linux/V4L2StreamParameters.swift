import CV4L2
import Glibc

extension V4L2Device {
    /// The time per frame that is set, in seconds; nil where the device has none to tell (`VIDIOC_G_PARM`).
    public func frameInterval(_ type: V4L2BufferType) throws(V4L2Error) -> V4L2Fraction? {
        var answer = v4l2_streamparm()
        answer.type = type.code
        switch attempt(.getParameters, &answer) {
        case 0: return V4L2Fraction(answer.parm.capture)
        // Drivers without the request say ENOTTY; those that pass it on to a sensor without it, EINVAL or ENOIOCTLCMD's
        // stand-in.
        case ENOTTY, EINVAL: return nil
        case let number: throw error(number, .getParameters)
        }
    }

    /// Sets the time per frame and answers what the driver made of it; nil where it has none to set (`VIDIOC_S_PARM`).
    public func setFrameInterval(
        _ type: V4L2BufferType, to interval: V4L2Fraction
    ) throws(V4L2Error) -> V4L2Fraction? {
        var answer = v4l2_streamparm()
        answer.type = type.code
        answer.parm.capture.timeperframe = v4l2_fract(
            numerator: interval.numerator, denominator: interval.denominator)
        try call(.setParameters, &answer)
        return V4L2Fraction(answer.parm.capture)
    }
}

extension V4L2Fraction {
    fileprivate init?(_ parameters: v4l2_captureparm) {
        guard parameters.capability & UInt32(V4L2_CAP_TIMEPERFRAME) != 0 else { return nil }
        self.init(parameters.timeperframe)
    }
}
