import CV4L2

/// What a driver says of a format's colours: the kernel's numbers, and what they mean in ITU-T H.273. What the driver
/// leaves open (0) follows from the rest by the kernel's rules (`V4L2_MAP_XFER_FUNC_DEFAULT()` and its like).
public struct V4L2Color: Hashable, Sendable {
    /// `V4L2_COLORSPACE_*`.
    public var colorspace: UInt32 = 0
    /// `V4L2_XFER_FUNC_*`.
    public var transferFunction: UInt32 = 0
    /// `V4L2_YCBCR_ENC_*`.
    public var encoding: UInt32 = 0
    /// `V4L2_QUANTIZATION_*`.
    public var quantization: UInt32 = 0

    public init(
        colorspace: UInt32 = 0, transferFunction: UInt32 = 0, encoding: UInt32 = 0, quantization: UInt32 = 0
    ) {
        self.colorspace = colorspace
        self.transferFunction = transferFunction
        self.encoding = encoding
        self.quantization = quantization
    }

    private var space: v4l2_colorspace {
        let stated = v4l2_colorspace(colorspace)
        // Neither a television's nor a monitor's signal is known to be behind it.
        return stated == V4L2_COLORSPACE_DEFAULT ? V4L2_COLORSPACE_SRGB : stated
    }

    /// The number of its primaries in H.273; nil: it has none (opRGB, raw samples).
    public var primariesCode: UInt8? {
        switch space {
        case V4L2_COLORSPACE_REC709, V4L2_COLORSPACE_SRGB, V4L2_COLORSPACE_JPEG: 1
        case V4L2_COLORSPACE_470_SYSTEM_M: 4
        case V4L2_COLORSPACE_470_SYSTEM_BG: 5
        case V4L2_COLORSPACE_SMPTE170M: 6
        case V4L2_COLORSPACE_SMPTE240M: 7
        case V4L2_COLORSPACE_BT2020: 9
        case V4L2_COLORSPACE_DCI_P3: 11
        default: nil
        }
    }

    /// The number of its transfer function in H.273; nil: it has none (opRGB).
    public var transferFunctionCode: UInt8? {
        switch v4l2_xfer_func(transferFunction) {
        case V4L2_XFER_FUNC_709: 1
        case V4L2_XFER_FUNC_SMPTE240M: 7
        case V4L2_XFER_FUNC_NONE: 8
        case V4L2_XFER_FUNC_SRGB: 13
        case V4L2_XFER_FUNC_SMPTE2084: 16
        case V4L2_XFER_FUNC_DCI_P3: 17
        case V4L2_XFER_FUNC_DEFAULT:
            switch space {
            case V4L2_COLORSPACE_OPRGB: nil
            case V4L2_COLORSPACE_SMPTE240M: 7
            case V4L2_COLORSPACE_RAW: 8
            case V4L2_COLORSPACE_SRGB, V4L2_COLORSPACE_JPEG: 13
            case V4L2_COLORSPACE_DCI_P3: 17
            default: 1
            }
        default: nil
        }
    }

    /// The number in H.273 of the matrix of its luma and chroma.
    public var matrixCode: UInt8 {
        switch v4l2_ycbcr_encoding(encoding) {
        case V4L2_YCBCR_ENC_601, V4L2_YCBCR_ENC_XV601, V4L2_YCBCR_ENC_SYCC: 6
        case V4L2_YCBCR_ENC_709, V4L2_YCBCR_ENC_XV709: 1
        case V4L2_YCBCR_ENC_BT2020: 9
        case V4L2_YCBCR_ENC_BT2020_CONST_LUM: 10
        case V4L2_YCBCR_ENC_SMPTE240M: 7
        default:
            switch space {
            case V4L2_COLORSPACE_REC709, V4L2_COLORSPACE_DCI_P3: 1
            case V4L2_COLORSPACE_BT2020: 9
            case V4L2_COLORSPACE_SMPTE240M: 7
            default: 6
            }
        }
    }

    /// Whether samples go from 0 to their largest value; nil: the driver leaves it open.
    public var statesFullRange: Bool? {
        switch v4l2_quantization(quantization) {
        case V4L2_QUANTIZATION_FULL_RANGE: true
        case V4L2_QUANTIZATION_LIM_RANGE: false
        default: nil
        }
    }

    /// The same of luma and chroma, where the driver leaves it open.
    public var lumaIsFullRange: Bool { space == V4L2_COLORSPACE_JPEG }
}
