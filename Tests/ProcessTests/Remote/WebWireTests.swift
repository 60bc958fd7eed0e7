import CameraBusTesting
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// What the gateway makes of bytes that no browser sends: requests, and frames of WebSockets.
    @Suite(.timeLimit(.minutes(5))) struct WebWire {
        private static let host = "Host: localhost\r\n"

        @Test func `a request that can be understood in two ways is refused, and ends the connection`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus)
            let many = (0..<64).map { "A\($0): b\r\n" }.joined()
            for (text, status) in [
                ("GET /\r\n\r\n", 505), ("G T / HTTP/1.1\r\n\(Self.host)\r\n", 400),
                ("GET / HTTP/2.0\r\n\(Self.host)\r\n", 505),
                ("GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n\(Self.host)no colon\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n\(Self.host)\(Self.host)\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n\(Self.host)A: \u{1}\r\n\r\n", 400),
                // A lone line feed ends no line, where another program in between might think so.
                ("GET /healthz HTTP/1.1\r\n\(Self.host)A: b\nC: d\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\nHost: localhost\n\n", 505),
                ("POST /login HTTP/1.1\r\n\(Self.host)Content-Length: 1\r\ncontent-length: 2\r\n\r\nab", 400),
                ("POST /login HTTP/1.1\r\n\(Self.host)Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
                ("POST /login HTTP/1.1\r\n\(Self.host)Content-Length: -1\r\n\r\n", 400),
                ("POST /login HTTP/1.1\r\n\(Self.host)Content-Length: 5000\r\n\r\n", 413),
                ("GET /healthz HTTP/1.1\r\n\(Self.host)\(many)\r\n", 431),
                ("GET /healthz HTTP/1.1\r\n\(Self.host)A: \(String(repeating: "b", count: 20_000))\r\n\r\n", 431),
                ("GET /healthz HTTP/1.1\r\n\(Self.host)\r\n", 200),
            ] {
                let connection = try web.connect()
                connection.send(text)
                #expect(connection.receiveHead().hasPrefix("HTTP/1.1 \(status) "), "\(text.prefix(120))")
                guard status != 200 else { continue }
                while !connection.receive().isEmpty {}
            }
            try await bus.stop()
        }

        @Test
        func `requests that come at once are answered in their order, and the last one to a half-closed connection`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus)
            let connection = try web.connect()
            connection.send(
                ["/page/none", "/healthz", "/camera/cam0.jpg?width=64"]
                    .map { "GET \($0) HTTP/1.1\r\n\(Self.host)\r\n" }.joined())
            connection.finish()
            var bytes: [UInt8] = []
            while true {
                let more = connection.receive()
                if more.isEmpty { break }
                bytes += more
            }
            let statuses = String(decoding: bytes, as: UTF8.self).split(separator: "HTTP/1.1 ").map { $0.prefix(3) }
            #expect(statuses == ["404", "200", "200"])
            #expect(bytes.suffix(2).elementsEqual([0xFF, 0xD9]))
            try await bus.stop()
        }

        @Test func `a stream of pictures ends with the requests of its connection, whatever still waits of them`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus)
            let request = "GET /camera/cam0.mjpg HTTP/1.1\r\n\(Self.host)\r\n"
            for isBegun in [true, false] {
                let connection = try web.connect()
                connection.send(request)
                if isBegun { #expect(connection.receiveHead().hasPrefix("HTTP/1.1 200")) }
                connection.send("GET /healthz HTTP/1.1\r\n\(Self.host)\r\n")
                connection.finish()
                var parts = 0
                while parts < 5000, !connection.receive().isEmpty { parts += 1 }
                #expect(parts < 5000)
            }
            try await bus.stop()
        }

        @Test func `who sends requests on and on, and takes no answers, fills no memory`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let tokens = try bus.write("view 0123456789abcdef laptop\n", to: "tokens")
            let web = try await WebGateway(bus, settings: "tokens = \"\(tokens)\"")
            let before = web.residentBytes
            let wrong = "Authorization: Bearer x\r\n"
            let silent = try ["", wrong, "Content-Length: 4000\r\n"].map { header in
                let body = String(repeating: "b", count: header.hasPrefix("Content") ? 4000 : 0)
                let request = Array("GET / HTTP/1.1\r\n\(Self.host)\(header)\r\n\(body)".utf8)
                return (connection: try web.connect(receiveBuffer: 4096), request: request)
            }
            var sent = silent.map { _ in 0 }
            // Meanwhile others are answered.
            let other = try web.connect()
            for _ in 0..<5000 {
                for (index, (connection, request)) in silent.enumerated() {
                    sent[index] += connection.send(atOnce: request[(sent[index] % request.count)...])
                }
                other.send("HEAD /login HTTP/1.1\r\n\(Self.host)\r\n")
                try #require(other.receiveHead().hasPrefix("HTTP/1.1 200"))
            }
            #expect(web.residentBytes - before < 16 << 20)
            withExtendedLifetime(silent) {}
            try await bus.stop()
        }

        @Test func `connections that say nothing keep nobody out`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus, settings: "connections_per_address = 4")
            let viewer = try web.connect()
            viewer.send("GET /camera/cam0.mjpg HTTP/1.1\r\n\(Self.host)\r\n")
            #expect(viewer.receiveHead().hasPrefix("HTTP/1.1 200"))
            let silent = try (0..<20).map { _ in
                let connection = try web.connect()
                connection.send("GET / HTTP/1.1\r\nA: ")
                return connection
            }
            #expect(try await web.get("/healthz").status == 200)
            // Who gets something keeps its place.
            #expect(!viewer.receive().isEmpty)
            while !silent[0].receive().isEmpty {}
            try await bus.stop()
        }

        private func masked(
            _ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, mask: [UInt8] = [1, 2, 3, 4]
        ) -> [UInt8] {
            var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
            bytes +=
                payload.count < 126
                ? [0x80 | UInt8(payload.count)] : [0xFE, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
            bytes += mask
            for (index, byte) in payload.enumerated() { bytes.append(byte ^ mask[index % 4]) }
            return bytes
        }

        @Test func `frames that no client may send end a WebSocket, with the reason`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus)
            let half = [UInt8](repeating: 0, count: 600)
            let cases: [(name: String, bytes: [UInt8], code: Int)] = [
                ("unmasked", [0x81, 0x01, 0x41], 1002), ("a reserved bit", [0xC1, 0x80, 0, 0, 0, 0], 1002),
                ("a reserved opcode", [0x83, 0x80, 0, 0, 0, 0], 1002),
                ("a continuation of nothing", masked(0, [1]), 1002),
                ("a message within a message", masked(1, [65], isFinal: false) + masked(1, [65]), 1002),
                ("a cut ping", masked(9, [], isFinal: false), 1002),
                ("a long ping", masked(9, [UInt8](repeating: 0, count: 126)), 1002),
                ("a length without end", [0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], 1009),
                ("too many bytes", masked(2, [UInt8](repeating: 0, count: 1025)), 1009),
                ("too many in parts", masked(2, half, isFinal: false) + masked(0, half), 1009),
                ("the end", masked(8, [3, 232]), 1000),
            ]
            for (name, bytes, code) in cases {
                let page = try WebSocketProbe(web)
                page.send(raw: bytes)
                var found: Int?
                while let message = try page.receive() { if case .close(let code) = message { found = code } }
                #expect(found == code, "\(name)")
            }
            try await bus.stop()
        }

        @Test func `a message is taken however it is cut`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus)
            let page = try WebSocketProbe(web)
            let text = Array(#"{"jsonrpc":"2.0","id":7,"method":"bus.ping"}"#.utf8)
            let parts =
                masked(1, Array(text[..<10]), isFinal: false) + masked(10, []) + masked(0, [], isFinal: false)
                + masked(0, Array(text[10...]))
            for byte in parts { page.send(raw: [byte]) }
            #expect(try page.until { $0["id"] == 7 }["result"] != nil)
            try await bus.stop()
        }
    }
}
