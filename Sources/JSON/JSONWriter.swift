/// Writes JSON into a byte buffer that the caller keeps, so that a hot path can reuse it without allocation.
public struct JSONWriter: Sendable {
    /// What has been written so far, as UTF-8.
    public private(set) var bytes: [UInt8] = []

    /// - Parameter capacity: bytes to set aside at once.
    public init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    /// Forgets what was written and keeps the memory.
    public mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    /// Forgets what was written after the first `count` bytes.
    public mutating func truncate(to count: Int) { bytes.removeLast(max(0, bytes.count - count)) }

    /// Appends text as it is: punctuation, or JSON made before.
    @inline(__always)
    public mutating func raw(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends bytes that are JSON already.
    public mutating func raw(_ json: [UInt8]) { bytes.append(contentsOf: json) }

    /// Appends bytes that are JSON already, or a part of it.
    public mutating func raw(_ json: some Sequence<UInt8>) { bytes.append(contentsOf: json) }

    /// Appends an integer in decimal digits.
    public mutating func integer(_ value: Int64) {
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        unsigned(value.magnitude)
    }

    /// Appends an unsigned integer in decimal digits.
    public mutating func unsigned(_ value: UInt64) {
        let start = bytes.count
        var rest = value
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        var low = start
        var high = bytes.count - 1
        while low < high {
            bytes.swapAt(low, high)
            low += 1
            high -= 1
        }
    }

    /// Appends so many thousandths, without zeros at the end.
    public mutating func thousandths(_ value: UInt64) {
        unsigned(value / 1000)
        var (rest, digit) = (value % 1000, UInt64(100))
        guard rest > 0 else { return }
        raw(".")
        while rest > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest / digit))
            rest %= digit
            digit /= 10
        }
    }

    /// Appends a string in quotes, with what JSON wants escaped.
    public mutating func string(_ value: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in value.utf8 {
            switch byte {
            case UInt8(ascii: "\""): raw("\\\"")
            case UInt8(ascii: "\\"): raw("\\\\")
            case 0x0A: raw("\\n")
            case 0x0D: raw("\\r")
            case 0x09: raw("\\t")
            case 0..<0x20:
                raw("\\u00")
                bytes.append(Self.digits[Int(byte >> 4)])
                bytes.append(Self.digits[Int(byte & 15)])
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Appends a whole value; members in the order of their names, so that equal values are equal bytes.
    public mutating func value(_ value: JSONValue) {
        switch value {
        case .null: raw("null")
        case .bool(let flag): flag ? raw("true") : raw("false")
        case .integer(let number): integer(number)
        case .number(let number): self.number(number)
        case .string(let text): string(text)
        case .array(let elements):
            raw("[")
            for (index, element) in elements.enumerated() {
                if index > 0 { raw(",") }
                self.value(element)
            }
            raw("]")
        case .object(let members) where members.isEmpty: raw("{}")
        case .object(let members):
            raw("{")
            for (index, name) in members.keys.sorted().enumerated() {
                if index > 0 { raw(",") }
                string(name)
                raw(":")
                self.value(members[name] ?? .null)
            }
            raw("}")
        }
    }

    // JSON has no infinities and no NaN (RFC 8259 section 6): they become null, which readers must expect for
    // "unknown".
    private mutating func number(_ value: Double) {
        guard value.isFinite else { return raw("null") }
        bytes.append(contentsOf: value.description.utf8)
    }

    private static let digits: [UInt8] = Array("0123456789abcdef".utf8)
}

extension JSONValue {
    /// The value as compact JSON in UTF-8.
    public var serialized: [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }
}

extension JSONValue: CustomStringConvertible {
    /// The value as compact JSON.
    public var description: String { String(decoding: serialized, as: UTF8.self) }
}
