/// Texts made fit for ids, and the hash that tells apart what looks the same then.
public enum Slug {
    /// 64 bits of FNV-1a: the same on every machine and in every version, unlike Swift's own hashes.
    public static func hash(_ text: String) -> UInt64 {
        text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// The last hexadecimal digits of the hash.
    ///
    /// - Parameter count: 1 to 16.
    public static func digits(_ text: String, count: Int) -> String {
        let all = String(hash(text), radix: 16)
        let padded = String(repeating: "0", count: 16 - all.count) + all
        return String(padded.suffix(min(max(count, 1), 16)))
    }

    /// Lower-case letters and digits, with one hyphen for each run of anything else, and none at the ends; at most
    /// `limit` bytes.
    public static func name(_ text: String, limit: Int) -> String {
        var slug = ""
        for byte in text.lowercased().utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                slug.unicodeScalars.append(UnicodeScalar(byte))
            default: if !slug.isEmpty, !slug.hasSuffix("-") { slug.append("-") }
            }
        }
        slug = String(slug.prefix(max(limit, 0)))
        while slug.hasSuffix("-") { slug.removeLast() }
        return slug
    }

    /// The parts that there are, with a hyphen between them and for every run of characters other than letters, digits
    /// and `._:-`; what is longer than `limit` bytes is cut off and stands there as a hash.
    public static func joined(_ parts: [String], limit: Int) -> String {
        var id = ""
        for part in parts where !part.isEmpty {
            if !id.isEmpty { id += "-" }
            for byte in part.utf8 {
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"),
                    UInt8(ascii: "-"):
                    id.unicodeScalars.append(UnicodeScalar(byte))
                default: if id.utf8.last != UInt8(ascii: "-") { id += "-" }
                }
            }
        }
        guard id.utf8.count > limit else { return id }
        return "\(id.prefix(max(limit - 17, 0)))-\(digits(id, count: 16))"
    }
}
