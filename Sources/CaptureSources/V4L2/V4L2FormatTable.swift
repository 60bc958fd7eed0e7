package import CaptureCore
import Glibc
package import Video4Linux

/// Makes the format table of a V4L2 device: one row for each pixel format at each size, in the driver's order.
package enum V4L2FormatTable {
    /// Sizes beyond this are no pictures but a driver's `UINT_MAX`.
    package static let largestSide: UInt32 = 65_535
    /// Rows at most, and rates of all rows together: a driver without end has as many sizes for each of as many
    /// formats. The largest real table known is vivid's, with 558 rows and 5115 rates.
    package static let rowLimit = 4096
    package static let rateLimit = 16_384

    /// Asks the driver for everything (`VIDIOC_ENUM_FMT`, `VIDIOC_ENUM_FRAMESIZES`, `VIDIOC_ENUM_FRAMEINTERVALS`).
    package static func read(_ device: any V4L2Device, _ type: V4L2BufferType) throws(V4L2Error) -> [CaptureFormat] {
        var rows: [CaptureFormat] = []
        var rateCount = 0
        for format in try device.formats(type) {
            for size in try sizes(device, type, format.pixelFormat) {
                guard rows.count < rowLimit, rateCount < rateLimit else { return rows }
                let intervals: [V4L2FrameInterval]
                do throws(V4L2Error) {
                    intervals = try device.frameIntervals(
                        pixelFormat: format.pixelFormat, width: UInt32(size.largest.width),
                        height: UInt32(size.largest.height))
                } catch  where error.errno != ENODEV {
                    // A size without known rates is still a size.
                    intervals = []
                }
                rateCount += intervals.count
                rows.append(
                    CaptureFormat(
                        id: "f\(rows.count)", pixelFormat: PixelFormat(code: format.pixelFormat),
                        dimensions: size.largest, sizes: size.range, frameRates: intervals.compactMap(rates),
                        title: format.description))
            }
        }
        return rows
    }

    private typealias Size = (largest: Dimensions, range: DimensionRange?)

    private static func sizes(
        _ device: any V4L2Device, _ type: V4L2BufferType, _ pixelFormat: UInt32
    ) throws(V4L2Error) -> [Size] {
        let listed: [Size] = try device.frameSizes(pixelFormat: pixelFormat).compactMap { size in
            switch size {
            case .discrete(let width, let height):
                guard (1...largestSide).contains(width), (1...largestSide).contains(height) else { return nil }
                return (Dimensions(width: Int(width), height: Int(height)), nil)
            case .stepwise(let range): return self.range(range)
            case .continuous(var range):
                (range.stepWidth, range.stepHeight) = (1, 1)
                return self.range(range)
            }
        }
        if !listed.isEmpty { return listed }
        // A driver that doesn't list sizes has at least the one that it makes of what is set now.
        do throws(V4L2Error) {
            let current = try device.format(type)
            let answer = try device.tryFormat(
                type, width: current.width, height: current.height, pixelFormat: pixelFormat)
            guard answer.pixelFormat == pixelFormat, (1...largestSide).contains(answer.width),
                (1...largestSide).contains(answer.height)
            else { return [] }
            return [(Dimensions(width: Int(answer.width), height: Int(answer.height)), nil)]
        } catch  where error.errno != ENODEV {
            return []
        }
    }

    /// A range with sides between 1 and the largest, whose maximum is a size that its steps reach; nil for an empty
    /// one.
    private static func range(_ range: V4L2SizeRange) -> Size? {
        func side(_ low: UInt32, _ high: UInt32, _ step: UInt32) -> (low: Int, high: Int, step: Int)? {
            let (low, high, step) = (Int(max(1, low)), Int(min(high, largestSide)), Int(max(1, step)))
            return low <= high ? (low, high - (high - low) % step, step) : nil
        }
        guard let width = side(range.minWidth, range.maxWidth, range.stepWidth),
            let height = side(range.minHeight, range.maxHeight, range.stepHeight)
        else { return nil }
        let largest = Dimensions(width: width.high, height: height.high)
        if width.low == width.high, height.low == height.high { return (largest, nil) }
        return (
            largest,
            DimensionRange(
                minimum: Dimensions(width: width.low, height: height.low), maximum: largest,
                step: Dimensions(width: width.step, height: height.step))
        )
    }

    private static func rates(_ interval: V4L2FrameInterval) -> FrameRateRange? {
        switch interval {
        case .discrete(let fraction): return FrameDuration(fraction).map(FrameRateRange.init(discrete:))
        case .stepwise(let minimum, let maximum, let step):
            return range(minimum, maximum, step: FrameDuration(step))
        case .continuous(let minimum, let maximum): return range(minimum, maximum, step: nil)
        }
    }

    private static func range(_ minimum: V4L2Fraction, _ maximum: V4L2Fraction, step: FrameDuration?) -> FrameRateRange?
    {
        guard let shortest = FrameDuration(minimum), let longest = FrameDuration(maximum), shortest <= longest else {
            return nil
        }
        return FrameRateRange(minFrameDuration: shortest, maxFrameDuration: longest, step: step)
    }
}

extension FrameDuration {
    /// nil for a fraction with a zero in it, which is how drivers say that they have none.
    init?(_ fraction: V4L2Fraction) { self.init(Int(fraction.numerator), Int(fraction.denominator)) }
}

extension V4L2Fraction {
    /// The nearest fraction that fits V4L2's 32 bits.
    init(_ duration: FrameDuration) {
        var (numerator, denominator) = (duration.numerator, duration.denominator)
        while numerator > UInt32.max || denominator > UInt32.max {
            (numerator, denominator) = (numerator / 2, denominator / 2)
        }
        self.init(numerator: UInt32(max(1, numerator)), denominator: UInt32(max(1, denominator)))
    }
}
