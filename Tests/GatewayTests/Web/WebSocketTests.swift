import Testing

@testable import Gateway

/// Frames of WebSockets, also of clients that mean ill.
@Suite struct WebSocketTests {
    private func frame(
        _ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, mask: [UInt8] = [1, 2, 3, 4]
    ) -> [UInt8] {
        var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
        if payload.count < 126 {
            bytes.append(0x80 | UInt8(payload.count))
        } else {
            bytes += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        }
        bytes += mask
        for (index, byte) in payload.enumerated() { bytes.append(byte ^ mask[index % 4]) }
        return bytes
    }

    private func events(_ bytes: [UInt8]) throws -> [WebSocketReader.Event] {
        var reader = WebSocketReader()
        var events: [WebSocketReader.Event] = []
        reader.take(bytes)
        while let event = try reader.next() { events.append(event) }
        return events
    }

    @Test func `messages come whole, however they are cut`() throws {
        let bytes =
            frame(1, Array("hello".utf8)) + frame(2, Array(repeating: 7, count: 300), isFinal: false) + frame(9, [1])
            + frame(0, [8]) + frame(10, []) + frame(1, [], isFinal: true) + frame(8, [3, 232])
        let expected: [WebSocketReader.Event] = [
            .text(Array("hello".utf8)), .ping([1]), .binary(Array(repeating: 7, count: 300) + [8]), .text([]), .close,
        ]
        #expect(try events(bytes) == expected)
        var reader = WebSocketReader()
        var found: [WebSocketReader.Event] = []
        for byte in bytes {
            reader.take([byte])
            while let event = try reader.next() { found.append(event) }
        }
        #expect(found == expected)
    }

    @Test func `what is against the rules ends the connection`() {
        func violation(_ bytes: [UInt8]) -> WebSocketFrame.Violation? {
            do {
                _ = try events(bytes)
                return nil
            } catch {
                return error as? WebSocketFrame.Violation
            }
        }
        // Unmasked, reserved bits, reserved opcodes, a continuation of nothing, a message within a message, a long or
        // cut ping.
        #expect(violation([0x81, 0x01, 0x41]) == .protocolError)
        #expect(violation([0xC1, 0x80, 0, 0, 0, 0]) == .protocolError)
        #expect(violation([0x83, 0x80, 0, 0, 0, 0]) == .protocolError)
        #expect(violation(frame(0, [1])) == .protocolError)
        #expect(violation(frame(1, [65], isFinal: false) + frame(1, [65])) == .protocolError)
        #expect(violation(frame(9, [], isFinal: false)) == .protocolError)
        #expect(violation([0x89, 0xFE, 0, 126]) == .protocolError)
        // Before any of it has come.
        #expect(violation([0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) == .tooBig)
        #expect(violation([0x82, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) == .tooBig)
        #expect(violation(frame(2, Array(repeating: 0, count: 1025))) == .tooBig)
        let part = frame(2, Array(repeating: 0, count: 600), isFinal: false)
        #expect(violation(part + frame(0, Array(repeating: 0, count: 600), isFinal: false)) == .tooBig)
    }

    @Test(arguments: [(0, 2), (125, 2), (126, 4), (65535, 4), (65536, 10)])
    func `our frames say how long they are`(count: Int, headBytes: Int) {
        let head = WebSocketFrame.head(.binary, payloadBytes: count)
        #expect(head.count == headBytes && head[0] == 0x82)
        let said = headBytes == 2 ? Int(head[1]) : head.dropFirst(2).reduce(0) { $0 << 8 | Int($1) }
        #expect(said == count)
    }
}
