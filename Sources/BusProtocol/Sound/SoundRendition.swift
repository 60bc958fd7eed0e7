/// Sound as a subscription asks for it: `native`, or `<s16|f32>[:<rate>x<channels>]`.
public struct SoundRendition: Hashable, Sendable {
    public enum Encoding: String, Hashable, Sendable, CaseIterable {
        /// As the device delivers it.
        case native
        /// Whole numbers of 16 bits; numbers from -1 to 1 in 32 bits.
        case s16, f32
    }

    /// The highest rate and the most channels that can be asked for.
    public static let maxRate = 768_000
    public static let maxChannels = 64

    public var encoding: Encoding
    /// Frames a second; nil: the device's. Rate and channels are given together.
    public var rate: Int?
    public var channels: Int?

    public init(_ encoding: Encoding, rate: Int? = nil, channels: Int? = nil) {
        self.encoding = encoding
        self.rate = rate
        self.channels = channels
    }

    /// It is available to everybody at any time, and counts for no limit: the sound as the microphone gives it.
    public var isAlwaysMade: Bool { self == SoundRendition(.native) }

    /// Reads a rendition as it stands in a topic.
    ///
    /// - Throws: `invalidParams` {path: `rendition`, why} that says which part is wrong.
    public init(parsing text: String) throws(BusError) {
        guard text.utf8.count <= Rendition.maxTextBytes else {
            throw Self.wrong("longer than \(Rendition.maxTextBytes) bytes")
        }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let word = parts.first, let encoding = Encoding(rawValue: String(word)) else {
            let known = Encoding.allCases.map(\.rawValue).joined(separator: ", ")
            throw Self.wrong("'\(parts.first ?? "")' is no sample format; there are \(known)")
        }
        self.init(encoding)
        guard parts.count == 2 else { return }
        guard encoding != .native else {
            throw Self.wrong("native takes no rate: name a sample format, as in s16:48000x2")
        }
        let numbers = parts[1].split(separator: "x", omittingEmptySubsequences: false)
        guard numbers.count == 2 else { throw Self.wrong("behind ':' comes <rate>x<channels>, as in s16:48000x2") }
        rate = try Self.number(numbers[0], "rate", upTo: Self.maxRate)
        channels = try Self.number(numbers[1], "number of channels", upTo: Self.maxChannels)
    }

    // Decimal digits without sign and without leading zeros, so that a number has one spelling.
    private static func number(_ text: Substring, _ what: String, upTo maximum: Int) throws(BusError) -> Int {
        let isDecimal = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isDecimal, text.utf8.first != UInt8(ascii: "0"), text.utf8.count <= 6, let number = Int(text) else {
            throw wrong("the \(what) must be a number in decimal digits, without leading zeros")
        }
        guard (1...maximum).contains(number) else { throw wrong("the \(what) is 1 to \(maximum)") }
        return number
    }

    private static func wrong(_ why: String) -> BusError { .invalidParams("rendition", why) }
}

extension SoundRendition: CustomStringConvertible {
    /// The one spelling that all equal wishes share.
    public var description: String {
        guard let rate, let channels else { return encoding.rawValue }
        return "\(encoding.rawValue):\(rate)x\(channels)"
    }
}
