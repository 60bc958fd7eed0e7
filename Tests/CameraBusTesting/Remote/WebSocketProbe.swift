public import JSON

/// A page, as its WebSocket has it: what it sends is masked as a browser's is.
public final class WebSocketProbe {
    public enum Message {
        case text(JSONValue)
        case binary([UInt8])
        case close(code: Int)
    }

    private let connection: RawConnection

    /// - Parameter headers: further lines of the handshake.
    public init(_ gateway: WebGateway, headers: String = "") throws {
        connection = try gateway.connect()
        connection.send(
            "GET /bus HTTP/1.1\r\nHost: 127.0.0.1:\(gateway.port)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\(headers)\r\n")
        let head = connection.receiveHead()
        // RFC 6455, section 1.3, has this key and its answer.
        guard head.hasPrefix("HTTP/1.1 101"), head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") else {
            throw TestingError("no WebSocket: \(head)")
        }
    }

    public func send(text: String) { send(1, Array(text.utf8)) }
    public func send(binary bytes: [UInt8]) { send(2, bytes) }
    public func send(raw bytes: [UInt8]) { connection.send(bytes) }

    private func send(_ opcode: UInt8, _ payload: [UInt8]) {
        let mask: [UInt8] = [1, 2, 3, 4]
        var bytes = [0x80 | opcode]
        bytes +=
            payload.count < 126
            ? [0x80 | UInt8(payload.count)] : [0xFE, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        bytes += mask
        for (index, byte) in payload.enumerated() { bytes.append(byte ^ mask[index % 4]) }
        connection.send(bytes)
    }

    /// The next message; nil: the connection has ended.
    public func receive() throws -> Message? {
        let head = connection.receive(exactly: 2)
        guard head.count == 2 else { return nil }
        let more = head[1] == 126 ? 2 : head[1] == 127 ? 8 : 0
        var count = Int(head[1])
        if more > 0 { count = connection.receive(exactly: more).reduce(0) { $0 << 8 | Int($1) } }
        let payload = connection.receive(exactly: count)
        guard payload.count == count else { return nil }
        switch head[0] {
        case 0x81: return .text(try JSONValue(parsing: payload))
        case 0x82: return .binary(payload)
        case 0x88: return .close(code: payload.prefix(2).reduce(0) { $0 << 8 | Int($1) })
        default: throw TestingError("a frame begins with \(head[0])")
        }
    }

    /// Asks, and answers the reply to it; what else comes is passed over.
    public func ask(_ id: Int, _ method: String, _ params: JSONValue = [:]) throws -> JSONValue {
        let request: JSONValue = [
            "jsonrpc": "2.0", "id": .integer(Int64(id)), "method": .string(method), "params": params,
        ]
        send(1, request.serialized)
        return try until { $0["id"]?.integer == Int64(id) }
    }

    /// The first text that is like that.
    public func until(_ isMeant: (JSONValue) -> Bool) throws -> JSONValue {
        while let message = try receive() {
            if case .text(let value) = message, isMeant(value) { return value }
        }
        throw TestingError("the WebSocket has ended")
    }

    /// The next message of bytes, in its parts.
    public func receiveBinary() throws -> (kind: UInt8, topic: String, header: JSONValue?, payload: [UInt8])? {
        while let message = try receive() {
            guard case .binary(let bytes) = message, bytes.count >= 8 else { continue }
            let topicEnd = 8 + Int(bytes[2]) + Int(bytes[3]) << 8
            let headerEnd = topicEnd + bytes[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) }
            guard headerEnd <= bytes.count else { throw TestingError("a message says that it is longer than it is") }
            return (
                bytes[0], String(decoding: bytes[8..<topicEnd], as: UTF8.self),
                try? JSONValue(parsing: Array(bytes[topicEnd..<headerEnd])), Array(bytes[headerEnd...])
            )
        }
        return nil
    }
}
