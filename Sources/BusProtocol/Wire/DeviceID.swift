/// The name of a device in topics, socket names and requests: its alias if it has one, else a name given by the
/// coordinator.
public enum DeviceID {
    /// The longest, in bytes.
    public static let maxBytes = 32

    /// True for `[a-z0-9-]{1,32}`: nothing that a path, a topic or a shell could take for something else.
    public static func isValid(_ text: some StringProtocol) -> Bool { isValid(utf8: text.utf8) }

    /// The same for bytes as they come from the wire.
    public static func isValid(utf8 bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.count <= maxBytes
            && bytes.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }
}
