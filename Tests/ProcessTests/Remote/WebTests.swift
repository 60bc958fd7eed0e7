import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// The web side of the real gateway, with curl as judge, and with clients that mean ill.
    @Suite(.timeLimit(.minutes(5))) struct Web {
        @Test func `the page, pictures, health and numbers are served, and nothing else is`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus)
            let page = try await web.get("/")
            #expect(page.status == 200 && String(decoding: page.body, as: UTF8.self).contains("<title>CameraBus"))
            for line in [
                "Content-Security-Policy: default-src 'self'", "X-Content-Type-Options: nosniff",
                "frame-ancestors 'none'",
                "Cache-Control: no-cache",
            ] {
                #expect(page.head.contains(line), "\(line)")
            }
            let tag = try #require(page.head.split(separator: "\r\n").first { $0.hasPrefix("ETag: ") }?.dropFirst(6))
            #expect(try await web.get("/page/index.html", ["-H", "If-None-Match: \(tag)"]).status == 304)

            let health = try await web.get("/healthz")
            #expect(health.status == 200 && health.body == Array("ok\n".utf8))
            let picture = try await web.get("/camera/cam0.jpg?width=320")
            #expect(picture.status == 200 && picture.head.contains("Content-Type: image/jpeg"))
            #expect(picture.body.starts(with: [0xFF, 0xD8]) && picture.body.suffix(2).elementsEqual([0xFF, 0xD9]))
            // Of a picture with 1280x720: bounds, whatever the camera has just now.
            for (query, width, height) in [
                ("width=320", 320, 180), ("width=1920", 1280, 720), ("height=2000", 1280, 720), ("height=90", 160, 90),
                ("width=300&height=300", 300, 168), ("width=960&height=90", 160, 90),
                ("crop=801x450+100+50", 801, 450), ("crop=800x450%2B100%2B50&width=400", 400, 224),
                ("rendition=jpeg:90x0,crop=800x450%2B100%2B50,rotate=90", 90, 160),
            ] {
                let answer = try await web.get("/camera/cam0.jpg?\(query)")
                #expect(answer.status == 200, "\(query)")
                let probed = try await bus.run(
                    "ffprobe", ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", "-"],
                    input: answer.body)
                #expect(probed.standardOutput == "\(width),\(height)\n", "\(query)")
            }
            let numbers = String(decoding: try await web.get("/metrics").body, as: UTF8.self)
            for line in [
                "camerabus_up 1", "camerabus_device_connected{device=\"cam0\"} 1",
                "camerabus_gateway_web_requests_total",
            ] {
                #expect(numbers.contains(line), "\(line)")
            }

            for (path, status) in [
                ("/camera/cam9.jpg", 404), ("/camera/cam0.png", 404), ("/camera/..%2fcam0.jpg", 400),
                ("/camera/cam0.jpg?width=x", 400), ("/camera/cam0.jpg?width=17000", 400),
                ("/camera/cam0.jpg?crop=8x8", 400), ("/camera/cam0.jpg?crop=8x8+0+0;rotate=90", 400),
                ("/camera/cam0.jpg?crop=1280x720+1+0", 400), ("/camera/cam0.jpg?rendition=bgr", 400),
                ("/camera/cam0.jpg?rendition=jpeg&width=4", 400),
                ("/page/../../etc/passwd", 400),
                ("/page/%2e%2e/%2e%2e/etc/passwd", 400), ("/page/passwd", 404), ("/etc/passwd", 404),
                ("/library/0123456789abcdef/x.mp4", 404), ("/library/x/..%2f..%2fetc%2fpasswd", 400), ("/bus", 400),
            ] {
                #expect(try await web.get(path).status == status, "\(path)")
            }
            #expect(try await web.get("/", ["-X", "DELETE"]).status == 405)
            // Another name for this machine, and a page of somebody else's.
            #expect(try await web.get("/", ["-H", "Host: evil.example.org"]).status == 403)
            #expect(try await web.get("/camera/cam0.jpg", ["-H", "Origin: http://evil.example.org"]).status == 403)
            #expect(throws: TestingError.self) {
                try WebSocketProbe(web, headers: "Origin: http://evil.example.org\r\n")
            }
            // Who comes by a proxy needs a token.
            #expect(try await web.get("/metrics", ["-H", "X-Forwarded-For: 1.2.3.4"]).status == 401)

            // A head without an end is not held.
            let endless = try web.connect()
            endless.send("GET / HTTP/1.1\r\nA: ")
            var sent = 0
            while sent < 64 << 20, endless.send([UInt8](repeating: 65, count: 65536)) { sent += 65536 }
            #expect(sent < 16 << 20 && LocalPort.isListening(web.port))
            try await bus.stop()
        }

        @Test func `twenty viewers cost one rendition, and one that stops reading costs nothing`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus)
            let request = "GET /camera/cam0.mjpg?width=1280 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            let viewers = try (0..<20).map { _ in try web.connect(receiveBuffer: 4096) }
            for viewer in viewers { viewer.send(request) }
            for viewer in viewers { #expect(viewer.receiveHead().hasPrefix("HTTP/1.1 200")) }
            let before = web.residentBytes
            // The first reads on; the others have stopped.
            var bytes = 0
            while bytes < 1 << 20 {
                let more = viewers[0].receive()
                if more.isEmpty { break }
                bytes += more.count
            }
            #expect(bytes >= 1 << 20)
            // Workers tell once a second.
            let rendition = "worker_rendition_frames{device=\"cam0\",rendition=\"jpeg:1280x0;fit\"}"
            try await eventually { try bus.metric(rendition) > 0 }
            #expect(try bus.metric("worker_subscriptions{device=\"cam0\"}") == 1)
            #expect(try bus.metric("worker_readers{device=\"cam0\"}") == 1)
            #expect(try bus.metric(rendition) <= bus.metric("worker_frames{device=\"cam0\"}"))
            // Each has its picture at most beside what the kernel holds.
            #expect(web.residentBytes - before < 16 << 20)
            try await bus.stop()
        }

        @Test func `a page asks, watches and sees by its WebSocket`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus)
            let page = try WebSocketProbe(web)
            let hello = try page.until { $0["method"] == "web.hello" }
            #expect(hello["params"]?["name"] == "web" && hello["params"]?["role"] == "control")
            let answer = try page.ask(1, "device.list")
            #expect(answer["result"]?["devices"]?.array?.count == 1)
            #expect(try page.ask(2, "bus.hello", ["client": "page"])["result"]?["remote"]?["name"] == "web")

            _ = try page.ask(3, "web.subscribe", ["topics": ["state/device/"]])
            let state = try page.until { $0["topic"] == "state/device/cam0/" }
            #expect(state["message"]?["value"]?["id"] == "cam0")
            let lock = try page.ask(4, "device.lock", ["devices": "cam0"])
            #expect(lock["result"] != nil)
            _ = try page.until { $0["message"]?["value"]?["lock"]?["holder"]?["name"] == "web" }

            let topic = Topic.frame("cam0", "jpeg:320x180").bytes
            page.send(binary: MediaAsk(.next, topic: topic).bytes)
            let frame = try #require(try page.receiveBinary())
            #expect(frame.kind == 1 && frame.topic == String(decoding: topic, as: UTF8.self))
            #expect(frame.header?["width"] == 320 && frame.payload.starts(with: [0xFF, 0xD8]))

            let refused = try page.ask(5, "web.subscribe", ["topics": ["frame/"]])
            #expect(refused["error"]?["data"]?["reason"] == "invalidParams")
            page.send(text: #"{"jsonrpc":"2.0","id":6,"method":"bus.ping","for":{"name":"root","role":"admin"}}"#)
            #expect(try page.until { $0["id"] == 6 }["error"]?["data"]?["reason"] == "unauthorized")

            // Photos come behind their answer.
            _ = try page.ask(7, "device.unlock", ["lock": lock["result"]?["lock"] ?? .null])
            let other = try WebSocketProbe(web)
            other.send(raw: [0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
            var code: Int?
            while let message = try other.receive() { if case .close(let found) = message { code = found } }
            #expect(code == 1009)
            try await bus.stop()
        }

        @Test func `a page is notified when the bus ends, and when it is back`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus)
            let page = try WebSocketProbe(web)
            _ = try page.until { $0["method"] == "web.bus" && $0["params"]?["here"] == true }
            try await bus.killCoordinator()
            _ = try page.until { $0["method"] == "web.bus" && $0["params"]?["here"] == false }
            #expect(try page.ask(1, "bus.ping")["error"]?["data"]?["reason"] == "shuttingDown")
            #expect(try await web.get("/healthz").status == 503)
            // Who comes only now is told at once.
            let late = try WebSocketProbe(web)
            _ = try late.until { $0["method"] == "web.bus" && $0["params"]?["here"] == false }
            try await bus.startCoordinator()
            _ = try late.until { $0["method"] == "web.bus" && $0["params"]?["here"] == true }
            _ = try page.until { $0["method"] == "web.bus" && $0["params"]?["here"] == true }
            #expect(try page.ask(2, "bus.ping")["result"] != nil)
            try await bus.stop()
        }

        @Test func `tokens let others in with their roles, and there are so many connections`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let lines = "view 0123456789abcdef laptop\nview 1123456789abcdef desk\n"
            let tokens = try bus.write(lines, to: "tokens")
            let web = try await WebGateway(
                bus, settings: "tokens = \"\(tokens)\"\nrole = \"none\"\nconnections_per_address = 4")
            #expect(try await web.get("/metrics").status == 401)
            let root = try await web.get("/")
            #expect(root.status == 303 && root.head.contains("Location: /login"))
            #expect(try await web.get("/metrics", ["-H", "Authorization: Bearer 0123456789abcdef"]).status == 200)
            #expect(try await web.get("/metrics", ["-H", "Authorization: Bearer 0123456789abcdee"]).status == 401)
            #expect(try await web.get("/login", ["-d", "token=0123456789abcdee"]).status == 401)
            let login = try await web.get("/login", ["-d", "token=0123456789abcdef"])
            #expect(login.status == 303 && login.head.contains("; Path=/; HttpOnly; SameSite=Strict"))
            #expect(!login.head.contains("0123456789abcdef"))
            let cookie = try #require(login.head.split(separator: "Set-Cookie: ").last?.prefix { $0 != ";" })
            #expect(try await web.get("/", ["-H", "Cookie: \(cookie)"]).status == 200)
            #expect(try await web.get("/metrics", ["-u", "laptop:0123456789abcdef"]).status == 200)
            let stranger = try await web.get("/camera/cam0.jpg")
            #expect(stranger.status == 401 && stranger.head.contains("WWW-Authenticate: Basic realm="))
            #expect(try await web.get("/library/a/b", ["-u", "laptop:0123456789abcdef"]).status == 401)

            // A file that others may read is none, until they may not any more; and a line that is wrong takes nothing
            // from others.
            let mine = ["-H", "Authorization: Bearer 0123456789abcdef"]
            #expect(chmod(tokens, 0o644) == 0)
            try await eventually { try await web.get("/metrics", mine).status == 401 }
            #expect(chmod(tokens, 0o600) == 0)
            try await eventually { try await web.get("/metrics", mine).status == 200 }
            try bus.write("\(lines)contrl fedcba9876543210 Ada\n", to: "tokens")
            try await eventually { web.program.standardError.contains("an invalid line of the tokens file is ignored") }
            #expect(web.program.standardError.contains("line 3: "))
            #expect(try await web.get("/metrics", mine).status == 200)

            // A browser that logs out ends what it has.
            let other = try await web.get("/login", ["-d", "token=0123456789abcdef"])
            let otherCookie = try #require(other.head.split(separator: "Set-Cookie: ").last?.prefix { $0 != ";" })
            let leaving = try WebSocketProbe(web, headers: "Cookie: \(otherCookie)\r\n")
            #expect(try leaving.until { $0["method"] == "web.hello" }["params"]?["session"] == true)
            let logout = try await web.get("/logout", ["-X", "POST", "-H", "Cookie: \(otherCookie)"])
            #expect(logout.status == 303 && logout.head.contains("Max-Age=0"))
            while try leaving.receive() != nil {}
            #expect(try await web.get("/metrics", ["-H", "Cookie: \(otherCookie)"]).status == 401)

            let page = try WebSocketProbe(web, headers: "Cookie: \(cookie)\r\n")
            #expect(try page.until { $0["method"] == "web.hello" }["params"]?["role"] == "view")
            #expect(try page.ask(1, "device.lock", ["devices": "cam0"])["error"]?["data"]?["reason"] == "unauthorized")
            func view(with token: String) throws -> (connection: RawConnection, head: String) {
                let connection = try web.connect()
                connection.send(
                    "GET /camera/cam0.mjpg HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\n\r\n")
                return (connection, connection.receiveHead())
            }
            let viewer = try view(with: "0123456789abcdef")
            #expect(viewer.head.hasPrefix("HTTP/1.1 200"))
            // One user has no more than half, and others of the address have the rest.
            let refused = try view(with: "0123456789abcdef")
            #expect(refused.head.hasPrefix("HTTP/1.1 429"))
            #expect(String(decoding: refused.connection.receive(), as: UTF8.self).contains("connections_per_address"))
            let others = try (0..<2).map { _ in try view(with: "1123456789abcdef") }
            for other in others { #expect(other.head.hasPrefix("HTTP/1.1 200")) }
            // All four are in use.
            let beyond = try web.connect()
            beyond.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(beyond.receiveHead().isEmpty)
            withExtendedLifetime(others) {}
            // Who is in the file no more is out.
            try bus.write("", to: "tokens")
            while try page.receive() != nil {}
            while !viewer.connection.receive().isEmpty {}
            #expect(try await web.get("/metrics", ["-H", "Authorization: Bearer 0123456789abcdef"]).status == 401)
            // With its line the token returns, and what logged in with it does not.
            try bus.write(lines, to: "tokens")
            try await eventually { try await web.get("/metrics", mine).status == 200 }
            #expect(try await web.get("/metrics", ["-H", "Cookie: \(cookie)"]).status == 401)
            try await bus.stop()
        }

        @Test func `everything of a token's user ends with the token, also while no gateway runs, and not before`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let line = "control 0123456789abcdef Ada\n"
            let settings = "tokens = \"\(try bus.write(line, to: "tokens"))\""
            let web = try await WebGateway(bus, settings: settings)
            let page = try WebSocketProbe(web, headers: "Authorization: Bearer 0123456789abcdef\r\n")
            let started = try page.ask(1, "movie.start", ["device": "cam0", "detached": true])["result"]
            let id = try #require(started?["movie"]?.string)
            let ears = try Movies.Ears(bus)
            let mine = ["-H", "Authorization: Bearer 0123456789abcdef"]
            let tokens = "\(bus.scratchPath)/tokens"
            for (disturb, mend) in [
                ({ chmod(tokens, 0o644) }, { chmod(tokens, 0o600) }),
                ({ rename(tokens, "\(tokens).bak") }, { rename("\(tokens).bak", tokens) }),
            ] {
                #expect(disturb() == 0)
                try await eventually { try await web.get("/metrics", mine).status == 401 }
                #expect(mend() == 0)
                try await eventually { try await web.get("/metrics", mine).status == 200 }
            }
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try client.call("movie.list")["movies"]?[0]?["state"] == "recording")
            web.program.process.send(SIGTERM)
            _ = try await web.program.end()
            try bus.write("", to: "tokens")
            let next = try await WebGateway(bus, settings: settings)
            #expect(try ears.next("didFinishRecording", of: id)["reason"] == "unauthorized")
            #expect(next.program.standardError.contains("a token was revoked"))
            try await bus.stop()
        }
    }
}
