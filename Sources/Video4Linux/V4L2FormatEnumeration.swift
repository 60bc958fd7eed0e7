import CV4L2
import Glibc

/// A pixel format that a node offers (`v4l2_fmtdesc`).
public struct V4L2FormatDescription: Hashable, Sendable {
    /// The four-character code.
    public var pixelFormat: UInt32
    /// The kernel's name for it: `YUYV 4:2:2`.
    public var description: String
    /// `V4L2_FMT_FLAG_*`.
    public var flags: UInt32

    public init(pixelFormat: UInt32, description: String, flags: UInt32) {
        self.pixelFormat = pixelFormat
        self.description = description
        self.flags = flags
    }
}

/// The sizes that a pixel format comes in, in pixels (`v4l2_frmsizeenum`).
public enum V4L2FrameSize: Hashable, Sendable {
    case discrete(width: UInt32, height: UInt32)
    case stepwise(V4L2SizeRange)
    /// Steps are 1.
    case continuous(V4L2SizeRange)
}

/// `v4l2_frmsize_stepwise`.
public struct V4L2SizeRange: Hashable, Sendable {
    public var minWidth, maxWidth, stepWidth: UInt32
    public var minHeight, maxHeight, stepHeight: UInt32
}

/// A fraction as the driver gives it: not reduced, and possibly with zeros in it (`v4l2_fract`).
public struct V4L2Fraction: Hashable, Sendable {
    public var numerator: UInt32
    public var denominator: UInt32

    public init(numerator: UInt32, denominator: UInt32) {
        self.numerator = numerator
        self.denominator = denominator
    }

    init(_ fraction: v4l2_fract) { self.init(numerator: fraction.numerator, denominator: fraction.denominator) }
}

/// The times from frame to frame that a size comes at, in seconds (`v4l2_frmivalenum`).
public enum V4L2FrameInterval: Hashable, Sendable {
    case discrete(V4L2Fraction)
    case stepwise(minimum: V4L2Fraction, maximum: V4L2Fraction, step: V4L2Fraction)
    case continuous(minimum: V4L2Fraction, maximum: V4L2Fraction)
}

/// How many answers an enumeration takes at most, since a broken driver may never say that it has come to the end.
///
/// The longest real one known is vivid's, 93 formats in a multi-planar queue.
public let v4l2EnumerationLimit = 256

extension V4L2Device {
    /// The pixel formats, in the driver's order (`VIDIOC_ENUM_FMT`).
    public func formats(_ type: V4L2BufferType) throws(V4L2Error) -> [V4L2FormatDescription] {
        try enumerate(.enumerateFormats) { (index, answer: inout v4l2_fmtdesc) in
            answer.index = index
            answer.type = type.code
        } element: { answer in
            V4L2FormatDescription(
                pixelFormat: answer.pixelformat, description: text(answer.description), flags: answer.flags)
        }
    }

    /// The sizes of a pixel format, in the driver's order; empty where it doesn't tell (`VIDIOC_ENUM_FRAMESIZES`).
    public func frameSizes(pixelFormat: UInt32) throws(V4L2Error) -> [V4L2FrameSize] {
        try enumerate(.enumerateFrameSizes) { (index, answer: inout v4l2_frmsizeenum) in
            answer.index = index
            answer.pixel_format = pixelFormat
        } element: { answer in
            switch answer.type {
            case V4L2_FRMSIZE_TYPE_DISCRETE.rawValue:
                .discrete(width: answer.discrete.width, height: answer.discrete.height)
            case V4L2_FRMSIZE_TYPE_STEPWISE.rawValue: .stepwise(V4L2SizeRange(answer.stepwise))
            case V4L2_FRMSIZE_TYPE_CONTINUOUS.rawValue: .continuous(V4L2SizeRange(answer.stepwise))
            default: nil
            }
        } isLast: { size in
            if case .discrete = size { false } else { true }
        }
    }

    /// The frame intervals at a size, in the driver's order; empty where it doesn't tell
    /// (`VIDIOC_ENUM_FRAMEINTERVALS`).
    public func frameIntervals(
        pixelFormat: UInt32, width: UInt32, height: UInt32
    ) throws(V4L2Error) -> [V4L2FrameInterval] {
        try enumerate(.enumerateFrameIntervals) { (index, answer: inout v4l2_frmivalenum) in
            answer.index = index
            answer.pixel_format = pixelFormat
            answer.width = width
            answer.height = height
        } element: { answer in
            let range = answer.stepwise
            return switch answer.type {
            case V4L2_FRMIVAL_TYPE_DISCRETE.rawValue: .discrete(V4L2Fraction(answer.discrete))
            case V4L2_FRMIVAL_TYPE_STEPWISE.rawValue:
                .stepwise(
                    minimum: V4L2Fraction(range.min), maximum: V4L2Fraction(range.max), step: V4L2Fraction(range.step))
            case V4L2_FRMIVAL_TYPE_CONTINUOUS.rawValue:
                .continuous(minimum: V4L2Fraction(range.min), maximum: V4L2Fraction(range.max))
            default: nil
            }
        } isLast: { interval in
            if case .discrete = interval { false } else { true }
        }
    }

    /// Asks for index 0, 1, … until the driver says `EINVAL`, which is the end, or the limit is reached.
    ///
    /// `ENOTTY` is the answer of drivers that don't have the request: nothing to list. A range is the only answer of
    /// its kind, so that it ends the enumeration, whatever a driver says to the next index.
    private func enumerate<Answer: ZeroInitialized, Element>(
        _ request: V4L2Request, prepare: (UInt32, inout Answer) -> Void, element: (Answer) -> Element?,
        isLast: (Element) -> Bool = { _ in false }
    ) throws(V4L2Error) -> [Element] {
        var elements: [Element] = []
        for index in 0..<UInt32(v4l2EnumerationLimit) {
            var answer = Answer()
            prepare(index, &answer)
            switch attempt(request, &answer) {
            case 0: break
            case EINVAL, ENOTTY: return elements
            case let number: throw error(number, request)
            }
            guard let next = element(answer) else { continue }
            elements.append(next)
            if isLast(next) { break }
        }
        return elements
    }
}

extension V4L2SizeRange {
    init(_ range: v4l2_frmsize_stepwise) {
        self.init(
            minWidth: range.min_width, maxWidth: range.max_width, stepWidth: range.step_width,
            minHeight: range.min_height, maxHeight: range.max_height, stepHeight: range.step_height)
    }
}

/// A structure of C's that Swift imports with an initialiser which sets every byte to zero, as V4L2 demands of reserved
/// fields.
private protocol ZeroInitialized { init() }
extension v4l2_fmtdesc: ZeroInitialized {}
extension v4l2_frmsizeenum: ZeroInitialized {}
extension v4l2_frmivalenum: ZeroInitialized {}
