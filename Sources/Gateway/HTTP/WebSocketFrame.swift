/// Frames of a WebSocket (RFC 6455).
enum WebSocketFrame {
    enum Opcode: UInt8, Hashable, Sendable {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10

        var isControl: Bool { rawValue >= 8 }
    }

    /// Why a connection has to end, as the code that it is closed with.
    enum Violation: UInt16, Error, Hashable, Sendable {
        case protocolError = 1002
        case invalidText = 1007
        case policy = 1008
        case tooBig = 1009
    }

    /// What stands before a client's payload.
    struct Head: Hashable, Sendable {
        var isFinal: Bool
        var opcode: Opcode
        var mask: [UInt8]
        var payloadBytes: Int
        /// Of the head itself.
        var bytes: Int
    }

    /// Reads the head of a client's frame; nil: it is not all there yet.
    ///
    /// - Parameter limit: bytes of a payload.
    static func head(in bytes: ArraySlice<UInt8>, limit: Int) throws(Violation) -> Head? {
        guard bytes.count >= 2 else { return nil }
        let (first, second) = (bytes[bytes.startIndex], bytes[bytes.startIndex + 1])
        guard first & 0x70 == 0, second & 0x80 != 0, let opcode = Opcode(rawValue: first & 0x0F) else {
            throw .protocolError
        }
        let isFinal = first & 0x80 != 0
        var count = UInt64(second & 0x7F)
        let more = count == 126 ? 2 : count == 127 ? 8 : 0
        guard !opcode.isControl || (isFinal && more == 0) else { throw .protocolError }
        let size = 2 + more + 4
        guard bytes.count >= 2 + more else { return nil }
        if more > 0 { count = bytes.dropFirst(2).prefix(more).reduce(0) { $0 << 8 | UInt64($1) } }
        // Before the payload comes, so that nothing is held of one that is too long.
        guard count <= UInt64(limit) else { throw .tooBig }
        guard bytes.count >= size else { return nil }
        return Head(
            isFinal: isFinal, opcode: opcode, mask: Array(bytes.dropFirst(2 + more).prefix(4)),
            payloadBytes: Int(count), bytes: size)
    }

    /// What stands before a payload of ours.
    static func head(_ opcode: Opcode, payloadBytes count: Int) -> [UInt8] {
        var head: [UInt8] = [0x80 | opcode.rawValue]
        switch count {
        case ...125: head.append(UInt8(count))
        case ...65535:
            head.append(126)
            head.append(UInt8(count >> 8))
            head.append(UInt8(count & 0xFF))
        default:
            head.append(127)
            for shift in stride(from: 56, through: 0, by: -8) { head.append(UInt8(truncatingIfNeeded: count >> shift)) }
        }
        return head
    }

    /// Payload of a closing frame.
    static func closing(_ code: UInt16) -> [UInt8] { [UInt8(code >> 8), UInt8(code & 0xFF)] }
}
