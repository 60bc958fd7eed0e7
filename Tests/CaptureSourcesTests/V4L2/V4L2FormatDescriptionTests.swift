import BusProtocol
import CV4L2
import CaptureCore
import CaptureSources
import Testing
import Video4Linux

/// Colours as drivers state them, and what the kernel's rules make of what they leave open.
@Suite struct V4L2FormatDescriptionTests {
    private func color(
        _ format: String, _ space: v4l2_colorspace, transfer: v4l2_xfer_func = V4L2_XFER_FUNC_DEFAULT,
        encoding: v4l2_ycbcr_encoding = V4L2_YCBCR_ENC_DEFAULT, range: v4l2_quantization = V4L2_QUANTIZATION_DEFAULT
    ) throws -> ColorDescription {
        let pixelFormat = try #require(PixelFormat(format))
        var stated = V4L2Format(type: .capture, width: 64, height: 48, pixelFormat: pixelFormat.code)
        stated.color = V4L2Color(
            colorspace: space.rawValue, transferFunction: transfer.rawValue, encoding: encoding.rawValue,
            quantization: range.rawValue)
        return FormatDescription(stated, pixelFormat: pixelFormat).color
    }

    private func expect(
        _ color: ColorDescription, _ primaries: ColorPrimaries?, _ transfer: TransferFunction?, _ matrix: YCbCrMatrix?,
        _ range: VideoColorRange
    ) {
        #expect(
            color
                == ColorDescription(primaries: primaries, transferFunction: transfer, matrix: matrix, range: range))
    }

    @Test func whatIsLeftOpenFollowsFromTheColorspace() throws {
        expect(try color("YUYV", V4L2_COLORSPACE_DEFAULT), .bt709, .sRGB, .smpte170m, .video)
        expect(try color("YUYV", V4L2_COLORSPACE_SRGB), .bt709, .sRGB, .smpte170m, .video)
        expect(try color("NV12", V4L2_COLORSPACE_SMPTE170M), .smpte170m, .bt709, .smpte170m, .video)
        expect(try color("NV12", V4L2_COLORSPACE_SMPTE240M), .smpte240m, .smpte240m, .smpte240m, .video)
        expect(try color("NV12", V4L2_COLORSPACE_REC709), .bt709, .bt709, .bt709, .video)
        expect(try color("YU12", V4L2_COLORSPACE_BT2020), .bt2020, .bt709, .bt2020nc, .video)
        expect(try color("YU12", V4L2_COLORSPACE_JPEG), .bt709, .sRGB, .smpte170m, .full)
        expect(try color("UYVY", V4L2_COLORSPACE_DCI_P3), .smpte431, .smpte428, .bt709, .video)
        expect(try color("UYVY", V4L2_COLORSPACE_470_SYSTEM_BG), .bt470bg, .bt709, .smpte170m, .video)
        // It has no numbers of H.273.
        expect(try color("UYVY", V4L2_COLORSPACE_OPRGB), nil, nil, .smpte170m, .video)
    }

    @Test func whatIsStatedCounts() throws {
        expect(
            try color(
                "YUYV", V4L2_COLORSPACE_SRGB, transfer: V4L2_XFER_FUNC_SMPTE2084,
                encoding: V4L2_YCBCR_ENC_BT2020_CONST_LUM, range: V4L2_QUANTIZATION_FULL_RANGE),
            .bt709, .smpte2084, .bt2020c, .full)
        expect(
            try color("YUYV", V4L2_COLORSPACE_REC709, encoding: V4L2_YCBCR_ENC_XV601),
            .bt709, .bt709, .smpte170m, .video)
        expect(
            try color("NV12", V4L2_COLORSPACE_JPEG, range: V4L2_QUANTIZATION_LIM_RANGE),
            .bt709, .sRGB, .smpte170m, .video)
    }

    @Test func pixelsOfRedGreenAndBlueHaveNoMatrix() throws {
        expect(try color("BGR3", V4L2_COLORSPACE_REC709), .bt709, .bt709, .gbr, .full)
        expect(
            try color("XR24", V4L2_COLORSPACE_SRGB, range: V4L2_QUANTIZATION_LIM_RANGE), .bt709, .sRGB, .gbr, .video)
        expect(try color("BA81", V4L2_COLORSPACE_RAW), nil, .linear, .gbr, .full)
    }

    @Test func greyIsInFullRangeUnlessItIsStatedOtherwise() throws {
        #expect(try color("GREY", V4L2_COLORSPACE_SRGB).range == .full)
        #expect(try color("Y16", V4L2_COLORSPACE_DEFAULT).range == .full)
        #expect(try color("GREY", V4L2_COLORSPACE_REC709, range: V4L2_QUANTIZATION_LIM_RANGE).range == .video)
    }

    @Test func picturesOfJPEGAreAsJFIFHasThem() throws {
        let stated = try color(
            "MJPG", V4L2_COLORSPACE_REC709, encoding: V4L2_YCBCR_ENC_709, range: V4L2_QUANTIZATION_LIM_RANGE)
        expect(stated, .bt709, .sRGB, .smpte170m, .full)
    }

    @Test func numbersThatNobodyKnowsCountAsOpen() throws {
        let color = try color(
            "YUYV", v4l2_colorspace(99), transfer: v4l2_xfer_func(99), encoding: v4l2_ycbcr_encoding(99),
            range: v4l2_quantization(99))
        expect(color, nil, nil, .smpte170m, .video)
    }
}
