/// The name of a device in topics, socket names and requests: its alias if it has one, else a name given by the
/// coordinator.
public enum DeviceID {
    /// The longest, in bytes.
    public static let maxBytes = 32

    /// What one looks like, for messages.
    public static let form = "1 to 32 characters of a-z, 0-9 and '-', beginning with a letter or digit"

    /// True for `[a-z0-9][a-z0-9-]{0,31}`: nothing that a path, a topic, a shell or a program's options could take for
    /// something else.
    public static func isValid(_ text: some StringProtocol) -> Bool { isValid(utf8: text.utf8) }

    /// The same for bytes as they come from the wire.
    public static func isValid(utf8 bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.count <= maxBytes && bytes.first != UInt8(ascii: "-")
            && bytes.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    /// A name as it was allowed once, with '-' at its beginning, becomes one that is allowed.
    ///
    /// - Parameter isTaken: whether another has that name.
    /// - Returns: the name itself, if it needs no change; nil: it never was allowed.
    public static func migrated(_ name: String, _ isTaken: (String) -> Bool) -> String? {
        guard name.hasPrefix("-") else { return isValid(name) ? name : nil }
        let stem = String(name.drop { $0 == "-" })
        guard stem.isEmpty || isValid(stem), name.utf8.count <= maxBytes else { return nil }
        let candidates = [stem] + (1...1000).map { "\((stem.isEmpty ? "renamed" : stem).prefix(26))-\($0)" }
        return candidates.first { isValid($0) && !isTaken($0) }
    }
}
