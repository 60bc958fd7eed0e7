/// The rule for the `uniqueID` of a photo's settings, by which the photo's topic is called.
public enum PhotoID {
    /// Longest id in bytes.
    public static let maxBytes = 64

    /// True for 1 to 64 letters and digits of ASCII and `-`.
    public static func isValid(_ id: some StringProtocol) -> Bool {
        (1...maxBytes).contains(id.utf8.count)
            && id.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
                default: false
                }
            }
    }
}
