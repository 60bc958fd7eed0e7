public import BusProtocol

/// The time from one frame to the next in seconds, as a fraction: 30000/1001 frames a second are `1001/30000`.
///
/// AVFoundation's `CMTime` frame duration; V4L2's `timeperframe`. Always positive and in lowest terms.
public struct FrameDuration: Hashable, Sendable, Comparable, CustomStringConvertible {
    public let numerator: Int
    public let denominator: Int

    /// What to reckon with where a source states none.
    public static let usual = FrameDuration(framesPerSecond: 30)

    /// nil unless both are positive.
    public init?(_ numerator: Int, _ denominator: Int) {
        guard numerator > 0, denominator > 0 else { return nil }
        var (a, b) = (numerator, denominator)
        while b != 0 { (a, b) = (b, a % b) }
        self.numerator = numerator / a
        self.denominator = denominator / a
    }

    /// The duration at that whole number of frames a second.
    public init(framesPerSecond: Int) {
        numerator = 1
        denominator = max(1, framesPerSecond)
    }

    /// The duration at that rate.
    public init(_ rate: FrameRate) { (numerator, denominator) = (rate.seconds, rate.frames) }

    /// Reads `1/30`.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let numerator = Int(parts[0]), let denominator = Int(parts[1]) else { return nil }
        self.init(numerator, denominator)
    }

    public var seconds: Double { Double(numerator) / Double(denominator) }
    public var framesPerSecond: Double { Double(denominator) / Double(numerator) }
    /// Nanoseconds, rounded down.
    public var nanoseconds: Int64 {
        Int64(clamping: Int128(numerator) * 1_000_000_000 / Int128(denominator))
    }

    public var description: String { "\(numerator)/\(denominator)" }

    public static func < (left: Self, right: Self) -> Bool {
        Int128(left.numerator) * Int128(right.denominator) < Int128(right.numerator) * Int128(left.denominator)
    }
}
