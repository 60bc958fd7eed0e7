import CV4L2

/// What a node says of itself (`v4l2_capability`).
public struct V4L2Capability: Hashable, Sendable {
    /// The kernel driver: `uvcvideo`.
    public var driver: String
    /// The name for people.
    public var card: String
    /// Where the device is: `usb-0000:00:14.0-2`.
    public var busInfo: String
    /// `V4L2_CAP_*` of this very node: other nodes of the same device may have more.
    public var flags: UInt32

    /// Takes single-planar pictures in (`V4L2_CAP_VIDEO_CAPTURE`).
    public var isCapture: Bool { has(V4L2_CAP_VIDEO_CAPTURE) }
    /// Takes multi-planar pictures in (`V4L2_CAP_VIDEO_CAPTURE_MPLANE`).
    public var isMultiplanarCapture: Bool { has(V4L2_CAP_VIDEO_CAPTURE_MPLANE) }
    /// Has the streaming requests, without which there are no buffers (`V4L2_CAP_STREAMING`).
    public var isStreaming: Bool { has(V4L2_CAP_STREAMING) }
    /// Converts pictures of its own memory and has no camera: such nodes have the capture flags as well as the output
    /// ones (`V4L2_CAP_VIDEO_M2M`, `V4L2_CAP_VIDEO_M2M_MPLANE`).
    public var isMemoryToMemory: Bool { has(V4L2_CAP_VIDEO_M2M) || has(V4L2_CAP_VIDEO_M2M_MPLANE) }

    /// The buffer type to capture with; nil for a node that doesn't capture pictures.
    public var captureType: V4L2BufferType? {
        isCapture ? .capture : isMultiplanarCapture ? .captureMultiplanar : nil
    }

    private func has(_ flag: Int32) -> Bool { flags & UInt32(bitPattern: flag) != 0 }
}

/// The queues that this module knows (`enum v4l2_buf_type`).
public enum V4L2BufferType: Hashable, Sendable {
    case capture, captureMultiplanar

    var code: UInt32 {
        switch self {
        case .capture: V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
        case .captureMultiplanar: V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE.rawValue
        }
    }
}

extension V4L2Device {
    /// `VIDIOC_QUERYCAP`.
    public func capability() throws(V4L2Error) -> V4L2Capability {
        var answer = v4l2_capability()
        try call(.queryCapability, &answer)
        // `capabilities` are those of all nodes of the device together; drivers older than device_caps have only these.
        let flags = answer.capabilities & cv4l2_CAP_DEVICE_CAPS != 0 ? answer.device_caps : answer.capabilities
        return V4L2Capability(
            driver: text(answer.driver), card: text(answer.card), busInfo: text(answer.bus_info), flags: flags)
    }
}
