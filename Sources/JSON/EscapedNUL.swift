/// A document in which each NUL is written in another way: jansson reads no member name with a NUL, which JSON allows
/// as an escape.
///
/// `\u0000` becomes `\u0001` and a `0`, so `\u0001` becomes `\u0001` and a `1`. No other text has the character U+0001.
struct EscapedNUL {
    private(set) var bytes: [UInt8] = []
    /// Where a byte was added.
    private var added: [Int] = []

    private static let escape = Array(#"\u000"#.utf8)

    init(_ document: UnsafeRawBufferPointer) {
        bytes.reserveCapacity(document.count + document.count / (Self.escape.count + 1))
        var next = document.startIndex
        while next < document.endIndex {
            guard document[next] == UInt8(ascii: "\\") else {
                bytes.append(document[next])
                next += 1
                continue
            }
            let digit = next + Self.escape.count
            if digit < document.endIndex, document[next..<digit].elementsEqual(Self.escape),
                case let which = document[digit], which == UInt8(ascii: "0") || which == UInt8(ascii: "1")
            {
                bytes += Self.escape + [UInt8(ascii: "1"), which]
                added.append(bytes.count - 1)
                next = digit + 1
            } else {
                // Both, as the second may be a backslash.
                bytes += document[next..<min(next + 2, document.endIndex)]
                next += 2
            }
        }
    }

    /// Where in the document a byte of ``bytes`` stands.
    func offset(_ offset: Int) -> Int { offset - added.count { $0 < offset } }

    /// A text of the document, from one of ``bytes``.
    static func original(_ text: String) -> String {
        guard text.utf8.contains(1) else { return text }
        var bytes: [UInt8] = []
        var isEscaped = false
        for byte in text.utf8 {
            if isEscaped {
                bytes.append(byte - UInt8(ascii: "0"))
                isEscaped = false
            } else if byte == 1 {
                isEscaped = true
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
