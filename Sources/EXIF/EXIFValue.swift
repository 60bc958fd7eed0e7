import CEXIF

/// A fraction of unsigned numbers.
public struct EXIFRational: Hashable, Sendable {
    public var numerator: UInt32
    public var denominator: UInt32

    public init(_ numerator: UInt32, _ denominator: UInt32) {
        self.numerator = numerator
        self.denominator = denominator
    }
}

/// A fraction of signed numbers.
public struct EXIFSignedRational: Hashable, Sendable {
    public var numerator: Int32
    public var denominator: Int32

    public init(_ numerator: Int32, _ denominator: Int32) {
        self.numerator = numerator
        self.denominator = denominator
    }
}

/// What a field holds (`EXIF_FORMAT_*`).
public enum EXIFValue: Hashable, Sendable {
    case bytes([UInt8])
    /// EXIF wants ASCII; what is beyond it is written as UTF-8, as readers expect. Ends where a zero stands.
    case text(String)
    case shorts([UInt16])
    case longs([UInt32])
    case rationals([EXIFRational])
    case signedRationals([EXIFSignedRational])
    /// Bytes whose meaning the field tells.
    case undefined([UInt8])

    var format: ExifFormat {
        switch self {
        case .bytes: EXIF_FORMAT_BYTE
        case .text: EXIF_FORMAT_ASCII
        case .shorts: EXIF_FORMAT_SHORT
        case .longs: EXIF_FORMAT_LONG
        case .rationals: EXIF_FORMAT_RATIONAL
        case .signedRationals: EXIF_FORMAT_SRATIONAL
        case .undefined: EXIF_FORMAT_UNDEFINED
        }
    }

    /// How many of its format.
    var components: Int {
        switch self {
        case .bytes(let bytes), .undefined(let bytes): bytes.count
        case .text(let text): text.utf8.prefix { $0 != 0 }.count + 1
        case .shorts(let values): values.count
        case .longs(let values): values.count
        case .rationals(let values): values.count
        case .signedRationals(let values): values.count
        }
    }

    /// The bytes that stand in the data, lowest byte first.
    var encoded: [UInt8] {
        func little(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
        return switch self {
        case .bytes(let bytes), .undefined(let bytes): bytes
        case .text(let text): text.utf8.prefix { $0 != 0 } + [0]
        case .shorts(let values): values.flatMap { little(UInt32($0)).prefix(2) }
        case .longs(let values): values.flatMap(little)
        case .rationals(let values): values.flatMap { little($0.numerator) + little($0.denominator) }
        case .signedRationals(let values):
            values.flatMap {
                little(UInt32(bitPattern: $0.numerator)) + little(UInt32(bitPattern: $0.denominator))
            }
        }
    }

    /// nil for formats that no field of the standard has.
    init?(_ format: ExifFormat, _ bytes: UnsafeBufferPointer<UInt8>) {
        func number(_ offset: Int) -> UInt32 {
            (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << (8 * UInt32($1)) }
        }
        func starts(_ size: Int) -> StrideTo<Int> { stride(from: 0, to: bytes.count / size * size, by: size) }
        switch format {
        case EXIF_FORMAT_BYTE: self = .bytes(Array(bytes))
        case EXIF_FORMAT_ASCII: self = .text(String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
        case EXIF_FORMAT_SHORT:
            self = .shorts(starts(2).map { UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8 })
        case EXIF_FORMAT_LONG: self = .longs(starts(4).map(number))
        case EXIF_FORMAT_RATIONAL:
            self = .rationals(starts(8).map { EXIFRational(number($0), number($0 + 4)) })
        case EXIF_FORMAT_SRATIONAL:
            self = .signedRationals(
                starts(8).map {
                    EXIFSignedRational(Int32(bitPattern: number($0)), Int32(bitPattern: number($0 + 4)))
                })
        case EXIF_FORMAT_UNDEFINED: self = .undefined(Array(bytes))
        default: return nil
        }
    }
}
