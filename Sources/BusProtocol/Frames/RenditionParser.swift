extension Rendition {
    /// The longest text that is read, in bytes.
    public static let maxTextBytes = 128
    /// The largest width and height that can be asked for, in pixels.
    public static let maxDimension = 16384
    /// The highest rate that can be asked for, in frames a second.
    public static let maxRate = 100_000

    /// A rendition as it stands in a topic, of one as people write it: `,` may separate options, too, which a shell
    /// leaves alone.
    public static func spelled(_ text: String) -> String { text.replacing(",", with: ";") }

    /// Reads a rendition as it stands in a topic.
    ///
    /// - Throws: `invalidParams` {path: `rendition`, why} that says which part is wrong.
    public init(parsing text: String) throws(BusError) {
        guard text.utf8.count <= Self.maxTextBytes else {
            throw .rendition("longer than \(Self.maxTextBytes) bytes")
        }
        var parser = RenditionParser(rest: text.utf8[...])
        self = try parser.rendition()
    }
}

extension BusError {
    fileprivate static func rendition(_ why: String) -> BusError { .invalidParams("rendition", why) }
}

/// Reads the grammar from left to right; each part may come once, in this order, those behind `;` in any.
private struct RenditionParser {
    var rest: Substring.UTF8View

    mutating func rendition() throws(BusError) -> Rendition {
        let word = String(Substring(rest.prefix { !":@;".utf8.contains($0) }))
        rest = rest.dropFirst(word.utf8.count)
        guard let encoding = Rendition.Encoding(rawValue: word) else {
            let known = Rendition.Encoding.allCases.map(\.rawValue).joined(separator: ", ")
            throw .rendition("'\(word)' is no format; there are \(known)")
        }
        var rendition = Rendition(encoding)
        if take(":") {
            guard encoding != .native else {
                throw .rendition("native takes no size: name a format, as in jpeg:640x360")
            }
            (rendition.width, rendition.height) = try size()
        }
        if take("@") { rendition.rateMillionths = try rate() }
        var seen: Set<String> = []
        while take(";") {
            let name = String(Substring(rest.prefix { !"=;".utf8.contains($0) }))
            rest = rest.dropFirst(name.utf8.count)
            switch name {
            case "q":
                guard encoding == .jpeg else { throw .rendition("only jpeg takes a quality") }
                rendition.quality = try quality()
            case "crop":
                guard encoding != .native else { throw .rendition("native is not cut: name a format, as in jpeg") }
                rendition.crop = try crop()
            case "rotate":
                guard encoding != .native else { throw .rendition("native is not turned: name a format, as in jpeg") }
                rendition.videoRotationAngle = try angle()
            case "mirror":
                guard encoding != .native else { throw .rendition("native is not mirrored: name a format, as in jpeg") }
                rendition.isVideoMirrored = true
            case "fit":
                guard rendition.width != nil else { throw .rendition("fit needs a size, as in jpeg:640x360;fit") }
                rendition.isFitted = true
            default:
                throw .rendition(
                    "behind ';' only q=<1–100>, crop=<width>x<height>+<x>+<y>, rotate=<0, 90, 180 or 270>, mirror and "
                        + "fit are known")
            }
            guard seen.insert(name).inserted else { throw .rendition("'\(name)' comes twice") }
        }
        guard rest.isEmpty else {
            throw .rendition(
                "'\(String(Substring(rest)))' is not expected there; the order is "
                    + "<format>:<width>x<height>@<rate>;q=<quality>;crop=<width>x<height>+<x>+<y>;rotate=<angle>;"
                    + "mirror;fit"
            )
        }
        return rendition
    }

    private mutating func size() throws(BusError) -> (width: Int, height: Int) {
        let width = try number("width", upTo: Rendition.maxDimension)
        guard take("x") else { throw .rendition("a size is <width>x<height>, as in 640x360") }
        let height = try number("height", upTo: Rendition.maxDimension)
        guard width > 0 || height > 0 else { throw .rendition("only one of width and height may be 0") }
        return (width, height)
    }

    private mutating func rate() throws(BusError) -> Int {
        let whole = try number("rate", upTo: Rendition.maxRate)
        var millionths = whole * 1_000_000
        if take(".") {
            let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            guard (1...6).contains(digits.count) else {
                throw .rendition("a rate has one to six digits behind its point")
            }
            rest = rest.dropFirst(digits.count)
            var unit = 100_000
            for digit in digits {
                millionths += Int(digit - UInt8(ascii: "0")) * unit
                unit /= 10
            }
        }
        guard millionths > 0 else { throw .rendition("the rate must be above 0") }
        guard millionths <= Rendition.maxRate * 1_000_000 else {
            throw .rendition("the rate is above \(Rendition.maxRate)")
        }
        return millionths
    }

    private mutating func quality() throws(BusError) -> Int {
        guard take("=") else { throw .rendition("a quality is q=<1–100>, as in q=75") }
        let quality = try number("quality", upTo: 100)
        guard quality > 0 else { throw .rendition("the quality is 1 to 100") }
        return quality
    }

    private mutating func crop() throws(BusError) -> Rendition.Crop {
        let form = "a crop is crop=<width>x<height>+<x>+<y>, as in crop=640x360+0+60"
        guard take("=") else { throw .rendition(form) }
        let width = try number("width", upTo: Rendition.maxDimension)
        guard take("x") else { throw .rendition(form) }
        let height = try number("height", upTo: Rendition.maxDimension)
        guard width > 0, height > 0 else { throw .rendition("a crop has at least one pixel") }
        guard take("+") else { throw .rendition(form) }
        let x = try number("x", upTo: Rendition.maxDimension)
        guard take("+") else { throw .rendition(form) }
        return Rendition.Crop(width: width, height: height, x: x, y: try number("y", upTo: Rendition.maxDimension))
    }

    private mutating func angle() throws(BusError) -> Int {
        guard take("=") else { throw .rendition("a rotation is rotate=<0, 90, 180 or 270>") }
        let angle = try number("angle", upTo: 270)
        guard angle % 90 == 0 else { throw .rendition("the angle is 0, 90, 180 or 270") }
        return angle
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard let first = rest.first, UInt32(first) == character.value else { return false }
        rest = rest.dropFirst()
        return true
    }

    // Decimal digits without sign and without leading zeros, so that a number has one spelling.
    private mutating func number(_ what: String, upTo maximum: Int) throws(BusError) -> Int {
        let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard let first = digits.first else { throw .rendition("the \(what) must be a number in decimal digits") }
        guard digits.count == 1 || first != UInt8(ascii: "0") else {
            throw .rendition("the \(what) has a leading zero")
        }
        guard digits.count <= 6 else { throw .rendition("the \(what) is above \(maximum)") }
        rest = rest.dropFirst(digits.count)
        let value = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        guard value <= maximum else { throw .rendition("the \(what) is above \(maximum)") }
        return value
    }
}
