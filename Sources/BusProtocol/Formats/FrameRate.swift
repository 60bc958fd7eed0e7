public import JSON

/// Frames a second, as a fraction: `30000/1001`. The one reader of what people and programs write for it.
public struct FrameRate: Hashable, Sendable {
    /// In lowest terms.
    public let frames: Int
    /// In so many seconds.
    public let seconds: Int

    /// What can't be read as a rate, and why.
    public struct ReadingError: Error, Hashable, Sendable, CustomStringConvertible {
        public let description: String
    }

    /// A fraction's parts have 32 bits, as V4L2's have (`struct v4l2_fract`).
    private static let longestPart = Int(UInt32.max)
    /// Frames a second.
    private static let limits = 0.000001...1_000_000.0
    /// Of video these have 1000/1001 of their rate, which people write with two or three digits: 29.97, 23.976.
    private static let nominal = [24, 30, 48, 60, 120, 240]
    /// Digits behind the point: as many as are read, and as many as a rate is exact to.
    private static let (mostDigits, exactDigits) = (9, 6)
    private static let form = "frames per second, such as 30, 29.97 or \"30000/1001\""

    /// nil unless both parts are positive and the rate is within a millionth and a million.
    public init?(_ frames: Int, _ seconds: Int) {
        guard frames > 0, seconds > 0, Self.limits.contains(Double(frames) / Double(seconds)) else { return nil }
        var (a, b) = (frames, seconds)
        while b != 0 { (a, b) = (b, a % b) }
        (self.frames, self.seconds) = (frames / a, seconds / a)
    }

    /// Reads a number by the digits that it is written with.
    public init?(_ rate: Double) {
        guard Self.limits.contains(rate) else { return nil }
        var (scale, digits) = (1.0, 0)
        while digits < Self.mostDigits, (rate * scale).rounded() / scale != rate {
            (scale, digits) = (scale * 10, digits + 1)
        }
        self.init(Int((rate * scale).rounded()), digits: digits)
    }

    /// Reads `30`, `29.97` or `30000/1001`.
    public init(_ text: String) throws(ReadingError) {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let rate = parts.count == 2 ? try Self.fraction(parts[0], parts[1], text) : Self.decimal(text.utf8)
        guard let rate else { throw ReadingError(description: "'\(text.prefix(64))' is not a number of \(Self.form)") }
        self = rate
    }

    /// Reads a number, or the same as a string.
    ///
    /// - Throws: `invalidParams` {path, why}.
    public init(json: JSONValue, path: String) throws(BusError) {
        if let text = json.string {
            do throws(ReadingError) { try self.init(text) } catch { throw .invalidParams(path, error.description) }
        } else if let rate = json.double.flatMap({ FrameRate($0) }) {
            self = rate
        } else {
            throw .invalidParams(path, "must be \(Self.form), above 0 and at most 1000000")
        }
    }

    public var framesPerSecond: Double { Double(frames) / Double(seconds) }

    /// Frames in a million seconds, rounded up: of a limit that is a little lower than the device's rate, a frame would
    /// be left out now and then.
    public var millionths: Int { Int(clamping: (Int128(frames) * 1_000_000 + Int128(seconds) - 1) / Int128(seconds)) }

    /// The shortest number that is read as this rate; where no number is, the nearest with six digits behind the point.
    public var number: JSONValue {
        let candidates = [1.0, 1000, 1_000_000].map { (framesPerSecond * $0).rounded() / $0 }
        return .plain(candidates.first { FrameRate($0) == self } ?? candidates[2])
    }

    /// A number, or the fraction of a rate that no number is read as; the nearest number of one whose fraction is not
    /// read either.
    public var json: JSONValue {
        let isFraction = frames >= seconds && frames <= Self.longestPart
        return isFraction && number.double.flatMap { FrameRate($0) } != self
            ? .string("\(frames)/\(seconds)") : number
    }

    // `digits` of the number are behind the point.
    private init?(_ number: Int, digits: Int) {
        let scale = (0..<digits).reduce(1) { power, _ in power * 10 }
        let isWhole = number % scale == 0
        // Nearer than half of the last digit that was written.
        let meant = Self.nominal.first {
            let far = Int128($0) * 1000 * Int128(scale) - Int128(number) * 1001
            return !isWhole && far.magnitude * 2 <= 1001
        }
        if let meant {
            self.init(meant * 1000, 1001)
        } else {
            var (number, scale) = (number, scale)
            while !isWhole, scale > 1_000_000 || number > Self.longestPart {
                (number, scale) = ((number + 5) / 10, scale / 10)
            }
            self.init(number, scale)
        }
    }

    private static func decimal(_ text: String.UTF8View) -> FrameRate? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count <= 2, let whole = whole(parts[0]), whole <= 1_000_000 else { return nil }
        guard parts.count == 2 else { return FrameRate(whole, digits: 0) }
        let digits = min(parts[1].count, mostDigits)
        guard digits > 0, parts[1].allSatisfy(isDigit), let fraction = Self.whole(parts[1].prefix(digits)) else {
            return nil
        }
        return FrameRate(whole * (0..<digits).reduce(1) { power, _ in power * 10 } + fraction, digits: digits)
    }

    private static func fraction(
        _ above: Substring.UTF8View, _ below: Substring.UTF8View, _ text: String
    ) throws(ReadingError) -> FrameRate? {
        guard let above = whole(above), let below = whole(below), max(above, below) <= longestPart else { return nil }
        guard let rate = FrameRate(above, below) else { return nil }
        guard above < below else { return rate }
        // A duration of a frame is written like this.
        let duration = FrameRate(below, above).map { ", or \($0.number) for a frame duration of \(text) s" } ?? ""
        throw ReadingError(
            description: "'\(text)' can be a rate or a frame duration; write \(rate.number) for \(text) frames per "
                + "second\(duration)")
    }

    private static func whole(_ text: Substring.UTF8View) -> Int? {
        text.allSatisfy(isDigit) ? Int(Substring(text)) : nil
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
