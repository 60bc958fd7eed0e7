import CV4L2

/// One of the kernel's requests: its number for `ioctl` and its name for people.
public struct V4L2Request: Hashable, Sendable {
    public let code: UInt
    public let name: String

    init(_ code: UInt, _ name: String) {
        self.code = code
        self.name = name
    }

    // Computed, so that a use on the frame path is two constants and no look at whether a global is initialised yet.
    public static var queryCapability: Self { .init(cv4l2_VIDIOC_QUERYCAP, "VIDIOC_QUERYCAP") }
    public static var enumerateFormats: Self { .init(cv4l2_VIDIOC_ENUM_FMT, "VIDIOC_ENUM_FMT") }
    public static var enumerateFrameSizes: Self { .init(cv4l2_VIDIOC_ENUM_FRAMESIZES, "VIDIOC_ENUM_FRAMESIZES") }
    public static var enumerateFrameIntervals: Self {
        .init(cv4l2_VIDIOC_ENUM_FRAMEINTERVALS, "VIDIOC_ENUM_FRAMEINTERVALS")
    }
    public static var getFormat: Self { .init(cv4l2_VIDIOC_G_FMT, "VIDIOC_G_FMT") }
    public static var setFormat: Self { .init(cv4l2_VIDIOC_S_FMT, "VIDIOC_S_FMT") }
    public static var tryFormat: Self { .init(cv4l2_VIDIOC_TRY_FMT, "VIDIOC_TRY_FMT") }
    public static var getParameters: Self { .init(cv4l2_VIDIOC_G_PARM, "VIDIOC_G_PARM") }
    public static var setParameters: Self { .init(cv4l2_VIDIOC_S_PARM, "VIDIOC_S_PARM") }
    public static var queryControl: Self { .init(cv4l2_VIDIOC_QUERY_EXT_CTRL, "VIDIOC_QUERY_EXT_CTRL") }
    public static var queryMenu: Self { .init(cv4l2_VIDIOC_QUERYMENU, "VIDIOC_QUERYMENU") }
    public static var getControls: Self { .init(cv4l2_VIDIOC_G_EXT_CTRLS, "VIDIOC_G_EXT_CTRLS") }
    public static var setControls: Self { .init(cv4l2_VIDIOC_S_EXT_CTRLS, "VIDIOC_S_EXT_CTRLS") }
    public static var tryControls: Self { .init(cv4l2_VIDIOC_TRY_EXT_CTRLS, "VIDIOC_TRY_EXT_CTRLS") }
    public static var requestBuffers: Self { .init(cv4l2_VIDIOC_REQBUFS, "VIDIOC_REQBUFS") }
    public static var queryBuffer: Self { .init(cv4l2_VIDIOC_QUERYBUF, "VIDIOC_QUERYBUF") }
    public static var queueBuffer: Self { .init(cv4l2_VIDIOC_QBUF, "VIDIOC_QBUF") }
    public static var dequeueBuffer: Self { .init(cv4l2_VIDIOC_DQBUF, "VIDIOC_DQBUF") }
    public static var streamOn: Self { .init(cv4l2_VIDIOC_STREAMON, "VIDIOC_STREAMON") }
    public static var streamOff: Self { .init(cv4l2_VIDIOC_STREAMOFF, "VIDIOC_STREAMOFF") }
    public static var getPriority: Self { .init(cv4l2_VIDIOC_G_PRIORITY, "VIDIOC_G_PRIORITY") }
    public static var setPriority: Self { .init(cv4l2_VIDIOC_S_PRIORITY, "VIDIOC_S_PRIORITY") }
    public static var getSelection: Self { .init(cv4l2_VIDIOC_G_SELECTION, "VIDIOC_G_SELECTION") }
    public static var setSelection: Self { .init(cv4l2_VIDIOC_S_SELECTION, "VIDIOC_S_SELECTION") }
    public static var subscribeEvent: Self { .init(cv4l2_VIDIOC_SUBSCRIBE_EVENT, "VIDIOC_SUBSCRIBE_EVENT") }
    public static var dequeueEvent: Self { .init(cv4l2_VIDIOC_DQEVENT, "VIDIOC_DQEVENT") }
}
