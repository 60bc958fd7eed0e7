public import JSON

/// What is said of pictures beside their pixel format and size: a `CMFormatDescription`'s extensions.
public struct FormatExtensions: Hashable, Sendable {
    /// Two positive numbers of at most 32 bits, one over the other.
    public struct Ratio: Hashable, Sendable {
        public let numerator: Int
        public let denominator: Int

        /// In lowest terms; nil unless both are positive and have at most 31 bits then.
        public init?(_ numerator: Int, _ denominator: Int) {
            guard numerator > 0, denominator > 0 else { return nil }
            var (a, b) = (numerator, denominator)
            while b != 0 { (a, b) = (b, a % b) }
            guard numerator / a <= Int(Int32.max), denominator / a <= Int(Int32.max) else { return nil }
            (self.numerator, self.denominator) = (numerator / a, denominator / a)
        }

        /// Reads two numbers with that between them.
        public init?(_ text: String, separator: Character) {
            let parts = text.split(separator: separator, omittingEmptySubsequences: false)
            guard parts.count == 2, let numerator = Int(parts[0]), let denominator = Int(parts[1]) else { return nil }
            self.init(numerator, denominator)
        }

        /// Of the pixels of a picture that is turned by 90 degrees.
        public var inverse: Ratio { Ratio(exactly: denominator, numerator) }

        public func text(_ separator: Character) -> String { "\(numerator)\(separator)\(denominator)" }

        /// Of the pixels of a picture that is stretched to another size. One that was only rounded to whole pixels is
        /// not.
        public func stretched(
            from size: (width: Int, height: Int), to other: (width: Int, height: Int)
        ) -> Ratio {
            let difference = abs(other.width * size.height - other.height * size.width)
            guard difference > 2 * max(size.width, size.height) else { return self }
            return Ratio(numerator * size.width * other.height, denominator * size.height * other.width) ?? self
        }

        public static let one = Ratio(exactly: 1, 1)

        private init(exactly numerator: Int, _ denominator: Int) {
            (self.numerator, self.denominator) = (numerator, denominator)
        }
    }

    /// The part of a picture that is meant to be seen, in its pixels.
    public struct Aperture: Hashable, Sendable {
        public var x: Int
        public var y: Int
        public var width: Int
        public var height: Int

        public init(x: Int, y: Int, width: Int, height: Int) {
            (self.x, self.y, self.width, self.height) = (x, y, width, height)
        }
    }

    /// Where the bits of a sample are in a longer word.
    public enum Alignment: String, Hashable, Sendable, CaseIterable {
        case low, high
    }

    public var color: ColorDescription
    /// A pixel's width over its height (`kCMFormatDescriptionExtension_PixelAspectRatio`).
    public var pixelAspectRatio = Ratio.one
    /// nil: all of it (`kCMFormatDescriptionExtension_CleanAperture`).
    public var cleanAperture: Aperture?
    /// Bits of a sample that mean something (`kCMFormatDescriptionExtension_BitsPerComponent`); nil: not known.
    public var bitsPerComponent: Int?
    /// nil: samples fill their words.
    public var alignment: Alignment?
    /// The nominal frame duration in seconds (`AVAssetTrack.minFrameDuration`); nil: the source doesn't state one.
    public var frameDuration: Ratio?
    /// Of depth: how many metres one step is; nil: pictures are not depth.
    public var metersPerStep: Double?

    public init(color: ColorDescription) { self.color = color }
}

extension FormatExtensions {
    /// The names on the wire, in the order in which they are written.
    enum Member: String, CaseIterable {
        case colorPrimaries, transferFunction, yCbCrMatrix, colorRange, chromaLocation, bitsPerComponent, alignment
        case pixelAspectRatio, cleanAperture, frameDuration, metersPerStep
    }

    /// Each with its value; nil for what is not said: what is unknown, square pixels, and the whole picture.
    func value(_ member: Member) -> JSONValue? {
        switch member {
        case .colorPrimaries: color.primaries.map { .string($0.rawValue) }
        case .transferFunction: color.transferFunction.map { .string($0.rawValue) }
        case .yCbCrMatrix: color.matrix.map { .string($0.rawValue) }
        case .colorRange: .string(color.range.rawValue)
        case .chromaLocation: color.chromaLocation.map { .string($0.rawValue) }
        case .bitsPerComponent: bitsPerComponent.map { JSONValue($0) }
        case .alignment: alignment.map { .string($0.rawValue) }
        case .pixelAspectRatio: pixelAspectRatio == .one ? nil : .string(pixelAspectRatio.text(":"))
        case .cleanAperture:
            cleanAperture.map {
                .object([
                    "x": JSONValue($0.x), "y": JSONValue($0.y), "width": JSONValue($0.width),
                    "height": JSONValue($0.height),
                ])
            }
        case .frameDuration: frameDuration.map { .string($0.text("/")) }
        case .metersPerStep: metersPerStep.map { JSONValue($0) }
        }
    }

    /// {colorPrimaries, …}: what is said.
    public var members: [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        for member in Member.allCases { members[member.rawValue] = value(member) }
        return members
    }

    /// Reads the members of an object; those with values that have no meaning here count as absent.
    public init(_ json: JSONValue) {
        func text(_ member: Member) -> String? { json[member.rawValue]?.string }
        func word<Word: RawRepresentable<String>>(_ member: Member) -> Word? {
            text(member).flatMap { Word(rawValue: $0) }
        }
        color = ColorDescription(
            primaries: word(.colorPrimaries), transferFunction: word(.transferFunction), matrix: word(.yCbCrMatrix),
            range: word(.colorRange) ?? .video, chromaLocation: word(.chromaLocation))
        alignment = word(.alignment)
        pixelAspectRatio = text(.pixelAspectRatio).flatMap { Ratio($0, separator: ":") } ?? .one
        frameDuration = text(.frameDuration).flatMap { Ratio($0, separator: "/") }
        bitsPerComponent = json[Member.bitsPerComponent.rawValue]?.integer.flatMap {
            (1...64).contains($0) ? Int($0) : nil
        }
        metersPerStep = json[Member.metersPerStep.rawValue]?.double.flatMap { $0 > 0 && $0.isFinite ? $0 : nil }
        if let area = json[Member.cleanAperture.rawValue], let x = area["x"]?.integer, let y = area["y"]?.integer,
            let width = area["width"]?.integer, let height = area["height"]?.integer,
            [x, y].allSatisfy({ (0...65536).contains($0) }), [width, height].allSatisfy({ (1...65536).contains($0) })
        {
            cleanAperture = Aperture(x: Int(x), y: Int(y), width: Int(width), height: Int(height))
        }
    }
}
