import CV4L2

/// A picture format as a queue has it (`v4l2_pix_format`, `v4l2_pix_format_mplane`).
public struct V4L2Format: Hashable, Sendable {
    public var type: V4L2BufferType
    /// Pixels.
    public var width: UInt32
    /// Pixels.
    public var height: UInt32
    /// The four-character code.
    public var pixelFormat: UInt32
    /// `V4L2_FIELD_*`.
    public var field: UInt32
    /// One for each region of memory that a buffer has.
    public var planes: [Plane]
    public var color = V4L2Color()

    /// `v4l2_plane_pix_format`.
    public struct Plane: Hashable, Sendable {
        /// Bytes from one line to the next; 0 for compressed formats.
        public var bytesPerLine: UInt32
        /// Bytes that the plane needs at most.
        public var sizeImage: UInt32

        public init(bytesPerLine: UInt32, sizeImage: UInt32) {
            self.bytesPerLine = bytesPerLine
            self.sizeImage = sizeImage
        }
    }

    public init(
        type: V4L2BufferType, width: UInt32, height: UInt32, pixelFormat: UInt32, field: UInt32 = 0,
        planes: [Plane] = []
    ) {
        self.type = type
        self.width = width
        self.height = height
        self.pixelFormat = pixelFormat
        self.field = field
        self.planes = planes
    }
}

extension V4L2Device {
    /// The format that is set (`VIDIOC_G_FMT`).
    public func format(_ type: V4L2BufferType) throws(V4L2Error) -> V4L2Format {
        var answer = v4l2_format()
        answer.type = type.code
        try call(.getFormat, &answer)
        return V4L2Format(answer, type)
    }

    /// What the driver would make of a format, changing nothing (`VIDIOC_TRY_FMT`).
    public func tryFormat(
        _ type: V4L2BufferType, width: UInt32, height: UInt32, pixelFormat: UInt32
    ) throws(V4L2Error) -> V4L2Format {
        try negotiate(.tryFormat, type, width, height, pixelFormat)
    }

    /// Sets the format and answers what the driver made of it, which may be another one (`VIDIOC_S_FMT`).
    public func setFormat(
        _ type: V4L2BufferType, width: UInt32, height: UInt32, pixelFormat: UInt32
    ) throws(V4L2Error) -> V4L2Format {
        try negotiate(.setFormat, type, width, height, pixelFormat)
    }

    private func negotiate(
        _ request: V4L2Request, _ type: V4L2BufferType, _ width: UInt32, _ height: UInt32, _ pixelFormat: UInt32
    ) throws(V4L2Error) -> V4L2Format {
        // Fields left at zero (field order, colour space, line length) are the driver's to choose.
        var answer = v4l2_format()
        answer.type = type.code
        switch type {
        case .capture:
            answer.fmt.pix.width = width
            answer.fmt.pix.height = height
            answer.fmt.pix.pixelformat = pixelFormat
        case .captureMultiplanar:
            answer.fmt.pix_mp.width = width
            answer.fmt.pix_mp.height = height
            answer.fmt.pix_mp.pixelformat = pixelFormat
        }
        try call(request, &answer)
        return V4L2Format(answer, type)
    }
}

extension V4L2Format {
    init(_ answer: v4l2_format, _ type: V4L2BufferType) {
        switch type {
        case .capture:
            let pix = answer.fmt.pix
            self.init(
                type: type, width: pix.width, height: pix.height, pixelFormat: pix.pixelformat, field: pix.field,
                planes: [Plane(bytesPerLine: pix.bytesperline, sizeImage: pix.sizeimage)])
            color = V4L2Color(
                colorspace: pix.colorspace, transferFunction: pix.xfer_func, encoding: pix.ycbcr_enc,
                quantization: pix.quantization)
        case .captureMultiplanar:
            let pix = answer.fmt.pix_mp
            let planes = withUnsafeBytes(of: pix.plane_fmt) { bytes in
                // A driver that claims more planes than the structure has gets those that are there.
                bytes.bindMemory(to: v4l2_plane_pix_format.self).prefix(Int(pix.num_planes)).map {
                    Plane(bytesPerLine: $0.bytesperline, sizeImage: $0.sizeimage)
                }
            }
            self.init(
                type: type, width: pix.width, height: pix.height, pixelFormat: pix.pixelformat, field: pix.field,
                planes: planes)
            color = V4L2Color(
                colorspace: pix.colorspace, transferFunction: UInt32(pix.xfer_func),
                encoding: UInt32(pix.ycbcr_enc), quantization: UInt32(pix.quantization))
        }
    }
}
