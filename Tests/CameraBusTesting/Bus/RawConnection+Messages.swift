extension RawConnection {
    /// Sends the beginning of ZMTP 3.0, up to where messages may come (RFC 23).
    ///
    /// - Parameter type: of our socket: `SUB`.
    public func open(as type: String) {
        let ready =
            [5] + Array("READY".utf8) + [11] + Array("Socket-Type".utf8) + [0, 0, 0, UInt8(type.utf8.count)]
            + Array(type.utf8)
        send(Self.greeting + [4, UInt8(ready.count)] + ready)
        // A message before its answer would be against the protocol.
        _ = receive(exactly: 64)
        _ = receive(exactly: Int(receive(exactly: 2).last ?? 0))
    }

    /// What a connection begins with.
    public static var greeting: [UInt8] {
        let mechanism = [0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 3, 0] + Array("NULL".utf8)
        return mechanism + [UInt8](repeating: 0, count: 64 - mechanism.count)
    }

    /// A message of one frame of at most 255 bytes.
    public static func message(_ body: [UInt8]) -> [UInt8] { [0, UInt8(body.count)] + body }

    /// Sends the bytes again and again.
    ///
    /// - Returns: how many were sent when the other end took no more; the limit when it took all.
    public func send(_ bytes: [UInt8], upTo limit: Int) -> Int {
        var sent = 0
        while sent < limit, send(bytes) { sent += bytes.count }
        return sent
    }
}
