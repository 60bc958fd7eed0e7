import EXIF

/// A number as the fraction by which EXIF and TIFF hold it. Both parts fit 31 bits, so that they do with a sign, too.
struct PhotoFraction: Hashable {
    /// Not negative, as the denominator.
    var numerator: Int64
    var denominator: Int64
    var isNegative = false

    private static let most = Int64(Int32.max)

    /// Exactly so many thousand millionths, as long as the parts fit.
    init(nanoseconds: Int64) {
        isNegative = nanoseconds < 0
        numerator = Int64(clamping: nanoseconds.magnitude)
        denominator = 1_000_000_000
        let common = Self.commonDivisor(numerator, denominator)
        numerator /= common
        denominator /= common
        while numerator > Self.most, denominator > 1 {
            numerator /= 2
            denominator /= 2
        }
        numerator = min(numerator, Self.most)
    }

    /// The simplest fraction that is as near as a millionth of it, or of 1 where it is smaller; nil for what is no
    /// number.
    init?(_ value: Double) {
        guard value.isFinite else { return nil }
        isNegative = value < 0
        let wanted = min(abs(value), Double(Self.most))
        let tolerance = max(wanted, 1) * 1e-6
        // Continued fractions: each step is the simplest that is nearer than the one before.
        var (before, now) = ((n: 0.0, d: 1.0), (n: 1.0, d: 0.0))
        var rest = wanted
        while true {
            let whole = rest.rounded(.down)
            let next = (n: whole * now.n + before.n, d: whole * now.d + before.d)
            if next.n > Double(Self.most) || next.d > Double(Self.most) { break }
            (before, now) = (now, next)
            if abs(next.n / next.d - wanted) <= tolerance || rest - whole < 1e-12 { break }
            rest = 1 / (rest - whole)
        }
        (numerator, denominator) = now.d > 0 ? (Int64(now.n), Int64(now.d)) : (Self.most, 1)
        if numerator == 0 { (denominator, isNegative) = (1, false) }
    }

    /// nil for less than nothing.
    var unsigned: EXIFRational? {
        isNegative ? nil : EXIFRational(UInt32(clamping: numerator), UInt32(clamping: denominator))
    }

    var signed: EXIFSignedRational {
        EXIFSignedRational(Int32(clamping: isNegative ? -numerator : numerator), Int32(clamping: denominator))
    }

    private static func commonDivisor(_ first: Int64, _ second: Int64) -> Int64 {
        var (first, second) = (first, second)
        while second != 0 { (first, second) = (second, first % second) }
        return max(1, first)
    }
}
