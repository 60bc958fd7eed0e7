import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// From where the web side of the real gateway can be reached, and by whose pages.
    @Suite(.timeLimit(.minutes(5))) struct WebReach {
        @Test func `a page of a configured origin reads pictures and numbers, and others don't`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus, settings: "origins = [\"https://desk.example.org\"]\nrole = \"view\"")
            let elsewhere = ["-H", "Sec-Fetch-Site: cross-site", "-H", "Sec-Fetch-Mode: cors"]
            let page = elsewhere + ["-H", "Origin: https://desk.example.org"]
            for path in ["/camera/cam0.jpg?width=320", "/metrics", "/healthz"] {
                let answer = try await web.get(path, page)
                #expect(answer.status == 200, "\(path)")
                #expect(answer.head.contains("Access-Control-Allow-Origin: https://desk.example.org\r\n"), "\(path)")
                #expect(answer.head.contains("Cross-Origin-Resource-Policy: cross-origin\r\n"), "\(path)")
            }
            let question = ["-X", "OPTIONS", "-H", "Access-Control-Request-Method: GET"]
            let answer = try await web.get("/metrics", page + question)
            #expect(answer.status == 204 && answer.head.contains("Access-Control-Allow-Headers: Authorization"))
            let socket = try WebSocketProbe(
                web, headers: "Origin: https://desk.example.org\r\nSec-Fetch-Site: cross-site\r\n")
            #expect(try socket.ask(1, "bus.ping")["result"] != nil)

            let evil = elsewhere + ["-H", "Origin: https://evil.example.org"]
            let others: [(options: [String], status: Int)] = [
                (elsewhere, 403), (evil, 403), (evil + question, 403), (question, 405), ([], 200),
            ]
            for (options, status) in others {
                let answer = try await web.get("/metrics", options)
                #expect(answer.status == status && !answer.head.contains("Access-Control-"), "\(options)")
            }
            try await bus.stop()
        }

        @Test func `who brings tokens that are none is answered slowly, and keeps nobody out whose token is one`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let tokens = try bus.write("view 0123456789abcdef laptop\n", to: "tokens")
            let web = try await WebGateway(bus, settings: "tokens = \"\(tokens)\"")
            let stranger = try web.connect()
            let wrong = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdee\r\n\r\n"
            let form = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 7\r\n\r\ntoken=x"
            let start = MonotonicClock.now()
            // More of them than seconds that anybody waits here.
            stranger.send(form + String(repeating: wrong, count: 120))
            var answers = ""
            func count() -> Int { answers.split(separator: "HTTP/1.1 401 ").count }
            func readOn() -> Bool {
                let more = stranger.receive()
                answers += String(decoding: more, as: UTF8.self)
                return !more.isEmpty
            }
            while count() < 3, readOn() {}
            #expect(count() == 3 && MonotonicClock.now() - start >= 3_000_000_000)
            let mine = try await web.get("/metrics", ["-H", "Authorization: Bearer 0123456789abcdef"])
            #expect(mine.status == 200)
            #expect(try await web.get("/login", ["-d", "token=0123456789abcdef"]).status == 303)
            // The stranger still waits for most of them.
            #expect(readOn() && count() < 100)
            try await bus.stop()
        }

        @Test func `a token that the command line makes lets in, and none when it is revoked`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let tokens = "\(bus.scratchPath)/tokens"
            let web = try await WebGateway(bus, settings: "tokens = \"\(tokens)\"")
            func token(_ arguments: String...) async throws -> ProgramResult {
                try await bus.run("camerabus", ["tokens"] + arguments + ["--file", tokens])
            }
            let made = try await token("new", "Ada", "--role", "control")
            try #require(made.status == 0, "\(made)")
            let bearer = ["-H", "Authorization: Bearer \(made.standardOutput.prefix { $0 != "\n" })"]
            try await eventually { try await web.get("/metrics", bearer).status == 200 }
            let other = ["-H", "Authorization: Bearer \(hexadecimal(randomBytes(16)))"]
            #expect(try await web.get("/metrics", other).status == 401)
            #expect(try await token("revoke", "Ada").status == 0)
            try await eventually { try await web.get("/metrics", bearer).status == 401 }
            try await bus.stop()
        }

        @Test(arguments: ["[web]\nlisten = 5\n", "[web\n", "\u{FF}"])
        func `what a configuration says that can't be is not tried again`(_ text: String) async throws {
            let scratch = try TemporaryDirectory()
            let path = "\(scratch.path)/gateway.toml"
            try File.replace(path, with: text == "\u{FF}" ? [0xFF] : Array(text.utf8), mode: 0o600)
            let result = try await RunningProgram(
                "camerabus-gateway", ["--config", path, "--runtime-dir", scratch.path],
                environment: ["PATH": "/usr/bin:/bin"], scratch: scratch
            ).end()
            #expect(result.status == EX_CONFIG && result.standardError.contains(path), "\(result)")
            let absent = try await RunningProgram(
                "camerabus-gateway", ["--config", "\(path).absent", "--runtime-dir", scratch.path],
                environment: ["PATH": "/usr/bin:/bin"], scratch: scratch
            ).end()
            #expect(absent.status == 1, "its disk may come: \(absent)")
        }

        @Test func `all addresses are those of IPv6 and of IPv4, and who is here is here by both`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let port = try LocalPort.free()
            let tokens = try bus.write("view 0123456789abcdef laptop\n", to: "tokens")
            let configuration = try bus.write(
                "[web]\nlisten = \"*:\(port)\"\ntokens = \"\(tokens)\"\nrole = \"view\"\n", to: "gateway.toml")
            let state = "\(bus.scratchPath)/gateway"
            mkdir(state, 0o700)
            let program = try bus.start(
                "camerabus-gateway", ["--config", configuration, "--runtime-dir", bus.directory.path],
                environment: ["STATE_DIRECTORY": state])
            try await eventually { program.standardError.contains("listening for browsers") }
            let other = try await bus.start(
                "camerabus-gateway", ["--config", configuration, "--runtime-dir", bus.directory.path]
            ).end()
            #expect(other.status == 1 && other.standardError.contains("perhaps another gateway"), "\(other)")
            // A machine may have no IPv6.
            let interfaces = (try? File.read("/proc/net/if_inet6", limit: 1 << 16)) ?? []
            let hasLoopback = String(decoding: interfaces, as: UTF8.self).contains("00000000000000000000000000000001")
            for address in hasLoopback ? ["127.0.0.1", "[::1]"] : ["127.0.0.1"] {
                let place = "http://\(address):\(port)/metrics"
                let result = try await bus.run(
                    "curl", ["-s", "-g", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", place])
                #expect(result.standardOutput == "200", "\(address)")
            }
            try await bus.stop()
        }
    }
}
