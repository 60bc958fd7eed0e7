/// Who is at the other end of an ipc connection, as the kernel says (`SO_PEERCRED`).
///
/// libzmq hands it out as the message property `Peer-Address` and as the address of a ZAP request: `host:uid:gid:pid`.
public struct PeerAddress: Hashable, Sendable {
    public var uid: UInt32
    public var gid: UInt32
    /// 0 for a peer in a process namespace that cannot be seen from here.
    public var pid: Int32

    public init(uid: UInt32, gid: UInt32, pid: Int32) {
        self.uid = uid
        self.gid = gid
        self.pid = pid
    }

    /// Reads the last three fields; the host may hold colons itself.
    ///
    /// nil for anything else: who cannot be named is not let in. The kernel's "no such id" (-1) is no user either.
    public init?(zmqPeerAddress text: String) {
        // Each request has one: nothing is allocated for it.
        var rest = text.utf8[...]
        guard let pid = Self.lastField(&rest, below: UInt64(Int32.max) + 1),
            let gid = Self.lastField(&rest, below: UInt64(UInt32.max)),
            let uid = Self.lastField(&rest, below: UInt64(UInt32.max))
        else { return nil }
        self.init(uid: UInt32(uid), gid: UInt32(gid), pid: Int32(pid))
    }

    /// Takes the number behind the last colon off, and the colon.
    private static func lastField(_ text: inout Substring.UTF8View, below limit: UInt64) -> UInt64? {
        guard let colon = text.lastIndex(of: UInt8(ascii: ":")) else { return nil }
        defer { text = text[..<colon] }
        return decimal(text[text.index(after: colon)...], below: limit)
    }

    private static func decimal(_ digits: Substring.UTF8View, below limit: UInt64) -> UInt64? {
        guard (1...10).contains(digits.count), digits.count == 1 || digits.first != UInt8(ascii: "0") else {
            return nil
        }
        var value: UInt64 = 0
        for byte in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            value = value * 10 + UInt64(byte - UInt8(ascii: "0"))
        }
        return value < limit ? value : nil
    }
}
