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
        var text = text
        guard let address = text.withUTF8({ Self(zmqPeerAddress: UnsafeRawBufferPointer($0)) }) else { return nil }
        self = address
    }

    /// Reads it from UTF-8; see ``init(zmqPeerAddress:)-(String)``.
    public init?(zmqPeerAddress text: UnsafeRawBufferPointer) {
        // Each request has one: nothing is allocated for it.
        var end = text.count
        guard let pid = Self.lastField(text, &end, below: UInt64(Int32.max) + 1),
            let gid = Self.lastField(text, &end, below: UInt64(UInt32.max)),
            let uid = Self.lastField(text, &end, below: UInt64(UInt32.max))
        else { return nil }
        self.init(uid: UInt32(uid), gid: UInt32(gid), pid: Int32(pid))
    }

    /// The number between the last colon before `end` and that; `end` is then the colon.
    private static func lastField(_ text: UnsafeRawBufferPointer, _ end: inout Int, below limit: UInt64) -> UInt64? {
        var colon = end - 1
        while colon >= 0, text[colon] != UInt8(ascii: ":") { colon -= 1 }
        let digits = (colon + 1)..<end
        guard colon >= 0, (1...10).contains(digits.count), digits.count == 1 || text[colon + 1] != UInt8(ascii: "0")
        else {
            return nil
        }
        var value: UInt64 = 0
        for index in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[index]) else { return nil }
            value = value * 10 + UInt64(text[index] - UInt8(ascii: "0"))
        }
        end = colon
        return value < limit ? value : nil
    }
}
