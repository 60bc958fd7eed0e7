/// Reads at once, without a tree in between, what nearly all documents of the bus are made of: texts in ASCII without
/// escapes, integers and short fractions, no member twice.
///
/// Whatever is not of that kind is left to the parser, right or wrong: what a text means, and what is said of a wrong
/// one, is decided there alone.
struct PlainJSON {
    /// Documents up to here, as requests are, cost less without a tree; longer ones are the parser's, which is no
    /// slower in a build that isn't optimized.
    static let shortBytes = 1024

    private var next: UnsafePointer<UInt8>
    private let end: UnsafePointer<UInt8>
    private var depthLeft: Int

    /// - Parameter maximumDepth: how deeply arrays and objects may be nested.
    /// - Returns: nil for a document that isn't plain.
    static func read(_ bytes: UnsafeRawBufferPointer, maximumDepth: Int) -> JSONValue? {
        bytes.withMemoryRebound(to: UInt8.self) { bytes in
            guard let start = bytes.baseAddress else { return nil }
            var reader = PlainJSON(next: start, end: start + bytes.count, depthLeft: maximumDepth)
            guard let value = reader.value() else { return nil }
            reader.skipSpace()
            return reader.next == reader.end ? value : nil
        }
    }

    /// The members of a document that is an object of a few.
    ///
    /// - Returns: nil for a document that isn't plain, and for any other.
    static func members(_ bytes: UnsafeRawBufferPointer, maximumDepth: Int) -> [(name: String, value: JSONValue)]? {
        bytes.withMemoryRebound(to: UInt8.self) { bytes in
            guard let start = bytes.baseAddress else { return nil }
            var reader = PlainJSON(next: start, end: start + bytes.count, depthLeft: maximumDepth)
            guard let members = reader.fewMembers() else { return nil }
            reader.skipSpace()
            return reader.next == reader.end ? members : nil
        }
    }

    private mutating func fewMembers() -> [(name: String, value: JSONValue)]? {
        skipSpace()
        guard next < end, next.pointee == UInt8(ascii: "{"), enter() else { return nil }
        var members: [(name: String, value: JSONValue)] = []
        if take(UInt8(ascii: "}")) { return members }
        members.reserveCapacity(Self.few)
        repeat {
            guard let (name, value) = member(), members.count < Self.few,
                !members.contains(where: { $0.name == name })
            else { return nil }
            members.append((name, value))
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}")) ? members : nil
    }

    private static let few = 6

    private mutating func member() -> (name: String, value: JSONValue)? {
        skipSpace()
        guard next < end, next.pointee == UInt8(ascii: "\""), let name = text(), take(UInt8(ascii: ":")),
            let value = value()
        else { return nil }
        return (name, value)
    }

    private mutating func value() -> JSONValue? {
        skipSpace()
        guard next < end else { return nil }
        switch next.pointee {
        case UInt8(ascii: "\""): return text().map(JSONValue.string)
        case UInt8(ascii: "{"): return object()
        case UInt8(ascii: "["): return array()
        case UInt8(ascii: "t"): return word("true", .bool(true))
        case UInt8(ascii: "f"): return word("false", .bool(false))
        case UInt8(ascii: "n"): return word("null", .null)
        default: return number()
        }
    }

    private mutating func object() -> JSONValue? {
        guard enter() else { return nil }
        if take(UInt8(ascii: "}")) { return leave(.object([:])) }
        var members = [String: JSONValue](minimumCapacity: 4)
        repeat {
            guard let (name, value) = member(), members.updateValue(value, forKey: name) == nil else { return nil }
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}")) ? leave(.object(members)) : nil
    }

    private mutating func array() -> JSONValue? {
        guard enter() else { return nil }
        if take(UInt8(ascii: "]")) { return leave(.array([])) }
        var elements: [JSONValue] = []
        repeat {
            guard let value = value() else { return nil }
            elements.append(value)
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]")) ? leave(.array(elements)) : nil
    }

    private mutating func enter() -> Bool {
        next += 1
        depthLeft -= 1
        return depthLeft >= 0
    }

    private mutating func leave(_ value: JSONValue) -> JSONValue {
        depthLeft += 1
        return value
    }

    private mutating func text() -> String? {
        next += 1
        let start = next
        while next < end {
            let byte = next.pointee
            if byte == UInt8(ascii: "\"") {
                defer { next += 1 }
                return String(decoding: UnsafeBufferPointer(start: start, count: next - start), as: UTF8.self)
            }
            guard byte >= 0x20, byte < 0x80, byte != UInt8(ascii: "\\") else { return nil }
            next += 1
        }
        return nil
    }

    private mutating func number() -> JSONValue? {
        let isNegative = next.pointee == UInt8(ascii: "-")
        if isNegative { next += 1 }
        let start = next
        guard let whole = digits(0), next - start <= 18 else { return nil }
        // JSON knows no 007.
        if start.pointee == UInt8(ascii: "0"), next - start > 1 { return nil }
        guard next < end, next.pointee == UInt8(ascii: ".") else {
            if next < end, next.pointee | 0x20 == UInt8(ascii: "e") { return nil }
            return .integer(isNegative ? -whole : whole)
        }
        guard next - start <= 15 else { return nil }
        let places = next - start
        next += 1
        let point = next
        guard let mantissa = digits(whole), places + (next - point) <= 15 else { return nil }
        if next < end, next.pointee | 0x20 == UInt8(ascii: "e") { return nil }
        // Both are whole numbers that a Double holds exactly: their quotient is the nearest to the decimal that there
        // is.
        let value = Double(mantissa) / Self.powersOfTen[next - point]
        return .number(isNegative ? -value : value)
    }

    /// Digits that go on after a number: nil without any. From 19 on the result means nothing.
    private mutating func digits(_ before: Int64) -> Int64? {
        let start = next
        var value = before
        while next < end, case let digit = next.pointee &- UInt8(ascii: "0"), digit < 10 {
            value = value &* 10 &+ Int64(digit)
            next += 1
        }
        return next > start ? value : nil
    }

    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ]

    private mutating func word(_ word: StaticString, _ value: JSONValue) -> JSONValue? {
        let count = word.utf8CodeUnitCount
        guard end - next >= count else { return nil }
        for index in 0..<count where next[index] != word.utf8Start[index] { return nil }
        next += count
        return value
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard next < end, next.pointee == byte else { return false }
        next += 1
        return true
    }

    private mutating func skipSpace() {
        while next < end, case let byte = next.pointee,
            byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
        {
            next += 1
        }
    }
}
