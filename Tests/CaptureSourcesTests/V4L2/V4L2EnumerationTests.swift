import CV4L2
import CaptureCore
import CaptureSources
import Glibc
import Testing
import Video4Linux

/// Format tables of drivers that no test machine has.
@Suite struct V4L2EnumerationTests {
    let device = V4L2ScriptedDevice()

    private func sizes(
        _ type: v4l2_frmsizetypes, _ low: (UInt32, UInt32), _ high: (UInt32, UInt32), step: (UInt32, UInt32),
        endless: Bool = false
    ) {
        device.on(.enumerateFrameSizes) { (answer: inout v4l2_frmsizeenum) in
            guard answer.index == 0 || endless else { return EINVAL }
            answer.type = type.rawValue
            answer.stepwise = v4l2_frmsize_stepwise(
                min_width: low.0, max_width: high.0, step_width: step.0, min_height: low.1, max_height: high.1,
                step_height: step.1)
            return 0
        }
    }

    private func intervals(
        _ type: v4l2_frmivaltypes, _ low: (UInt32, UInt32), _ high: (UInt32, UInt32), step: (UInt32, UInt32) = (0, 0)
    ) {
        device.on(.enumerateFrameIntervals) { (answer: inout v4l2_frmivalenum) in
            answer.type = type.rawValue
            func fraction(_ pair: (UInt32, UInt32)) -> v4l2_fract { v4l2_fract(numerator: pair.0, denominator: pair.1) }
            answer.stepwise = v4l2_frmival_stepwise(min: fraction(low), max: fraction(high), step: fraction(step))
            return 0
        }
    }

    private func table() throws -> [CaptureFormat] { try V4L2FormatTable.read(device, .capture) }

    @Test func stepwise() throws {
        device.offers("YUYV")
        sizes(V4L2_FRMSIZE_TYPE_STEPWISE, (32, 16), (1280, 720), step: (16, 8))
        // The rates of a range of sizes are those of its largest.
        device.on(.enumerateFrameIntervals) { (answer: inout v4l2_frmivalenum) in
            guard answer.width == 1280, answer.height == 720 else { return EINVAL }
            answer.type = V4L2_FRMIVAL_TYPE_STEPWISE.rawValue
            answer.stepwise = v4l2_frmival_stepwise(
                min: v4l2_fract(numerator: 1001, denominator: 30000), max: v4l2_fract(numerator: 1, denominator: 1),
                step: v4l2_fract(numerator: 1001, denominator: 30000))
            return 0
        }
        let ntsc = try #require(FrameDuration(1001, 30000))
        #expect(
            try table() == [
                CaptureFormat(
                    id: "f0", pixelFormat: .yuyv, dimensions: Dimensions(width: 1280, height: 720),
                    sizes: DimensionRange(
                        minimum: Dimensions(width: 32, height: 16), maximum: Dimensions(width: 1280, height: 720),
                        step: Dimensions(width: 16, height: 8)),
                    frameRates: [
                        FrameRateRange(
                            minFrameDuration: ntsc, maxFrameDuration: FrameDuration(framesPerSecond: 1), step: ntsc)
                    ])
            ])
    }

    /// The driver's steps mean nothing there.
    @Test func continuous() throws {
        device.offers("YUYV")
        sizes(V4L2_FRMSIZE_TYPE_CONTINUOUS, (1, 1), (4096, 2160), step: (0, 77))
        intervals(V4L2_FRMIVAL_TYPE_CONTINUOUS, (1, 120), (10, 1), step: (3, 4))
        let row = try #require(try table().first)
        #expect(row.sizes?.step == Dimensions(width: 1, height: 1))
        #expect(row.sizes?.contains(Dimensions(width: 1919, height: 1081)) == true)
        #expect(
            row.frameRates == [
                FrameRateRange(
                    minFrameDuration: FrameDuration(framesPerSecond: 120),
                    maxFrameDuration: try #require(FrameDuration(10, 1)))
            ])
    }

    /// The largest size of a row is one that the device has.
    @Test func maximumBetweenSteps() throws {
        device.offers("YUYV")
        sizes(V4L2_FRMSIZE_TYPE_STEPWISE, (20, 10), (105, 50), step: (16, 0))
        let row = try #require(try table().first)
        #expect(row.dimensions == Dimensions(width: 100, height: 50))
        #expect(row.sizes?.contains(row.dimensions) == true)
    }

    @Test func rangeOfOneSizeIsASize() throws {
        device.offers("YUYV")
        sizes(V4L2_FRMSIZE_TYPE_STEPWISE, (640, 480), (640, 480), step: (1, 1))
        let row = try #require(try table().first)
        #expect(row.sizes == nil)
        #expect(row.dimensions == Dimensions(width: 640, height: 480))
    }

    /// Numbers that would overflow or make no picture.
    @Test func absurdSizes() throws {
        device.offers("YUYV")
        sizes(V4L2_FRMSIZE_TYPE_STEPWISE, (0, 0), (.max, .max), step: (.max, 2))
        let row = try #require(try table().first)
        #expect(row.dimensions.width == 1 && row.dimensions.height == 65_535)
        for (low, high) in [((10, 10), (5, 20)), ((70_000, 10), (80_000, 20))] as [((UInt32, UInt32), (UInt32, UInt32))]
        {
            sizes(V4L2_FRMSIZE_TYPE_STEPWISE, low, high, step: (1, 1))
            #expect(try table() == [])
        }
        device.offers(width: 0, height: 480)
        #expect(try table() == [])
        device.offers(width: .max, height: .max)
        #expect(try table() == [])
    }

    @Test func absurdRates() throws {
        device.offers("YUYV")
        device.offers(width: 640, height: 480)
        let pairs: [(UInt32, UInt32)] = [(0, 0), (1, 0), (0, 30), (1, 30), (.max, .max)]
        device.on(.enumerateFrameIntervals) { (answer: inout v4l2_frmivalenum) in
            guard answer.index < pairs.count else { return EINVAL }
            answer.type = V4L2_FRMIVAL_TYPE_DISCRETE.rawValue
            let pair = pairs[Int(answer.index)]
            answer.discrete = v4l2_fract(numerator: pair.0, denominator: pair.1)
            return 0
        }
        #expect(
            try table().first?.frameRates == [
                FrameRateRange(discrete: FrameDuration(framesPerSecond: 30)),
                FrameRateRange(discrete: FrameDuration(framesPerSecond: 1)),
            ])
        intervals(V4L2_FRMIVAL_TYPE_STEPWISE, (1, 1), (1, 30))
        #expect(try table().first?.frameRates == [])
    }

    /// Drivers that never say `EINVAL`.
    @Test func endless() throws {
        device.on(.enumerateFormats) { (answer: inout v4l2_fmtdesc) in
            answer.pixelformat = fourCC("YUYV")
            return 0
        }
        device.on(.enumerateFrameSizes) { (answer: inout v4l2_frmsizeenum) in
            answer.type = V4L2_FRMSIZE_TYPE_DISCRETE.rawValue
            answer.discrete = v4l2_frmsize_discrete(width: 640, height: 480)
            return 0
        }
        device.on(.enumerateFrameIntervals) { (answer: inout v4l2_frmivalenum) in
            answer.type = V4L2_FRMIVAL_TYPE_DISCRETE.rawValue
            answer.discrete = v4l2_fract(numerator: 1, denominator: 30)
            return 0
        }
        #expect(try table().count * v4l2EnumerationLimit == V4L2FormatTable.rateLimit)
        #expect(device.calls["VIDIOC_ENUM_FMT", default: 0] == v4l2EnumerationLimit)
        device.on(.enumerateFrameIntervals) { (_: inout v4l2_frmivalenum) in ENOTTY }
        #expect(try table().count == V4L2FormatTable.rowLimit)
    }

    /// A range is said once, whatever the driver says to the next index.
    @Test func endlessRange() throws {
        device.offers("YUYV")
        sizes(V4L2_FRMSIZE_TYPE_STEPWISE, (2, 2), (640, 480), step: (2, 2), endless: true)
        intervals(V4L2_FRMIVAL_TYPE_STEPWISE, (1, 30), (1, 1), step: (1, 30))
        let rows = try table()
        #expect(rows.count == 1)
        #expect(rows.first?.frameRates.count == 1)
    }

    @Test func kindsOfAnswersThatAreNew() throws {
        device.offers("YUYV")
        device.on(.enumerateFrameSizes) { (answer: inout v4l2_frmsizeenum) in
            answer.type = 99
            return 0
        }
        #expect(try table() == [])
        #expect(device.calls["VIDIOC_ENUM_FRAMESIZES"] == v4l2EnumerationLimit)
    }

    @Test(arguments: [ENOTTY, EINVAL, EIO])
    func ratesThatAreNotTold(_ number: Int32) throws {
        device.offers("YUYV", "MJPG")
        device.offers(width: 640, height: 480)
        device.on(.enumerateFrameIntervals) { (_: inout v4l2_frmivalenum) in number }
        let rows = try table()
        #expect(rows.map(\.pixelFormat) == [.yuyv, .motionJPEG])
        #expect(rows.allSatisfy { $0.frameRates.isEmpty })
    }

    /// Without a list of sizes there is the one that the driver makes of the present one.
    @Test func sizesThatAreNotTold() throws {
        device.offers("YUYV", "MJPG", "H264")
        device.on(.getFormat) { (answer: inout v4l2_format) in
            answer.fmt.pix.width = 700
            answer.fmt.pix.height = 500
            return 0
        }
        device.on(.tryFormat) { (answer: inout v4l2_format) in
            if answer.fmt.pix.pixelformat == fourCC("H264") { return EINVAL }
            // MJPG, although listed, isn't to be had.
            answer.fmt.pix.pixelformat = fourCC("YUYV")
            answer.fmt.pix.width -= 60
            answer.fmt.pix.height -= 20
            return 0
        }
        let rows = try table()
        #expect(rows.map(\.pixelFormat) == [.yuyv])
        #expect(rows.first?.dimensions == Dimensions(width: 640, height: 480))
    }

    @Test func deviceThatGoesAwayMeanwhile() {
        device.offers("YUYV")
        device.offers(width: 640, height: 480)
        device.on(.enumerateFrameIntervals) { (_: inout v4l2_frmivalenum) in ENODEV }
        #expect(throws: V4L2Error(errno: ENODEV, operation: "VIDIOC_ENUM_FRAMEINTERVALS", device: device.path)) {
            try table()
        }
        device.on(.enumerateFormats) { (_: inout v4l2_fmtdesc) in EIO }
        #expect(throws: V4L2Error(errno: EIO, operation: "VIDIOC_ENUM_FMT", device: device.path)) { try table() }
    }

    @Test func deviceWithoutFormats() throws { #expect(try table() == []) }

    // MARK: Rate

    @Test(arguments: [ENOTTY, EINVAL])
    func parametersUnsupported(_ number: Int32) throws {
        device.on(.getParameters) { (_: inout v4l2_streamparm) in number }
        #expect(try device.frameInterval(.capture) == nil)
    }

    @Test func parametersWithoutRate() throws {
        device.on(.getParameters) { (answer: inout v4l2_streamparm) in
            answer.parm.capture.timeperframe = v4l2_fract(numerator: 1, denominator: 30)
            return 0
        }
        #expect(try device.frameInterval(.capture) == nil)
    }

    @Test func parametersThatFail() {
        device.on(.getParameters) { (_: inout v4l2_streamparm) in EIO }
        #expect(throws: V4L2Error(errno: EIO, operation: "VIDIOC_G_PARM", device: device.path)) {
            try device.frameInterval(.capture)
        }
    }

    // MARK: Node

    /// What the whole device can do is not what this node can.
    @Test func capabilitiesOfTheNode() throws {
        device.on(.queryCapability) { (answer: inout v4l2_capability) in
            answer.capabilities = V4L2_CAP_DEVICE_CAPS | UInt32(V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING)
            answer.device_caps = UInt32(V4L2_CAP_META_CAPTURE | V4L2_CAP_STREAMING)
            return 0
        }
        #expect(try device.capability().captureType == nil)
        device.on(.queryCapability) { (answer: inout v4l2_capability) in
            answer.capabilities = UInt32(V4L2_CAP_VIDEO_CAPTURE_MPLANE | V4L2_CAP_STREAMING)
            return 0
        }
        #expect(try device.capability().captureType == .captureMultiplanar)
    }

    /// A multi-planar driver that claims more planes than the structure has.
    @Test func tooManyPlanes() throws {
        device.on(.getFormat) { (answer: inout v4l2_format) in
            answer.fmt.pix_mp.num_planes = 200
            return 0
        }
        #expect(try device.format(.captureMultiplanar).planes.count == Int(VIDEO_MAX_PLANES))
    }
}
