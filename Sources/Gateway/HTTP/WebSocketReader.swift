/// Joins a client's frames to messages, up to the maximum size of a message.
struct WebSocketReader {
    enum Event: Hashable {
        case text([UInt8])
        case binary([UInt8])
        case ping([UInt8])
        case close
    }

    /// Bytes of a message of text, and of another.
    static let maximumTextBytes = 1 << 20
    static let maximumBinaryBytes = 1024

    private var buffer: [UInt8] = []
    private var message: [UInt8] = []
    private var kind: WebSocketFrame.Opcode?

    /// Takes in what has come.
    mutating func take(_ bytes: some Sequence<UInt8>) { buffer.append(contentsOf: bytes) }

    /// What is there as a whole; nil: nothing more.
    mutating func next() throws(WebSocketFrame.Violation) -> Event? {
        var start = 0
        defer { buffer.removeFirst(start) }
        while let head = try WebSocketFrame.head(in: buffer[start...], limit: Self.maximumTextBytes),
            buffer.count - start - head.bytes >= head.payloadBytes
        {
            let first = start + head.bytes
            let payload = Self.unmasked(buffer[first..<(first + head.payloadBytes)], head.mask)
            start = first + head.payloadBytes
            switch head.opcode {
            case .ping: return .ping(payload)
            case .pong: continue
            case .close: return .close
            case .text, .binary:
                guard kind == nil else { throw .protocolError }
                kind = head.opcode
                message = payload
            case .continuation:
                guard kind != nil else { throw .protocolError }
                message.append(contentsOf: payload)
            }
            let limit = kind == .binary ? Self.maximumBinaryBytes : Self.maximumTextBytes
            guard message.count <= limit else { throw .tooBig }
            guard head.isFinal, let whole = kind else { continue }
            kind = nil
            defer { message = [] }
            return whole == .binary ? .binary(message) : .text(message)
        }
        return nil
    }

    private static func unmasked(_ bytes: ArraySlice<UInt8>, _ mask: [UInt8]) -> [UInt8] {
        var payload = Array(bytes)
        for index in payload.indices { payload[index] ^= mask[index & 3] }
        return payload
    }
}
