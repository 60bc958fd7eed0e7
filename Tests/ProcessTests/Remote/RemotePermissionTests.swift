import BusProtocol
import CameraBusTesting
import CaptureCore
import Glibc
import JSON
import Testing
import ZeroMQ

extension ProcessTests {
    /// `permission.remote_role` and `permission.view_sound` on every way to another machine.
    @Suite(.timeLimit(.minutes(5))) struct RemotePermission {
        private static let secret = "0123456789abcdef"
        private static let mine = ["-H", "Authorization: Bearer \(secret)"]
        private static let movingPicture =
            "GET /camera/cam0.mjpg?width=64 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(secret)\r\n\r\n"
        private static let picture = Topic.frame("cam0", "jpeg:64x36").bytes
        private static let sounds = [Array("audio/mic0/native/".utf8), Array("level/mic0/".utf8)]

        /// What the configuration says, and the media that it leaves to a role.
        struct Step: Sendable {
            var limit: String
            var viewHasSound = true

            var text: String { "[permission]\nremote_role = \"\(limit)\"\nview_sound = \(viewHasSound)\n" }

            func allows(_ media: AuthorizationMedia, _ given: AuthorizationRole) -> Bool {
                let role = min(given, AuthorizationRole(rawValue: limit) ?? AuthorizationRole.none)
                return switch media {
                case .video: role >= .view
                case .audio: role >= .control || (role == .view && viewHasSound)
                case .library, .libraryAdd: role >= .control
                }
            }
        }

        /// Each limit comes after one that allows more and after one that allows less.
        private static let steps = [
            Step(limit: "none"), Step(limit: "admin"), Step(limit: "view", viewHasSound: false),
            Step(limit: "control"), Step(limit: "view"), Step(limit: "none"), Step(limit: "view"),
        ]

        private func reload(_ bus: BusHarness, _ step: Step, _ role: Request.Principal.Role) async throws {
            try bus.write(step.text, to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            let media = AuthorizationMedia.allCases.filter { step.allows($0, AuthorizationRole(role)) }
            try await bus.wait(for: "state/bus/") {
                $0?["remote"]?[role.rawValue]?["media"] == JSONValue(media.map(\.rawValue))
                    && $0?["remote"]?["admin"]?["role"] == .string(step.limit)
            }
        }

        /// Waits until a topic is given or refused, as it is to be: what is on its way may come before.
        private func expect(
            _ isGiven: Bool, _ what: String, _ ask: () throws -> JSONValue?,
            sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            let deadline = Deadline.usual
            var header: JSONValue?
            repeat {
                header = try ask()
                if isGiven ? header != nil && header?["error"] == nil : header?["error"]?["reason"] == "unauthorized" {
                    return
                }
            } while !deadline.hasPassed
            Issue.record(
                "\(what) is not \(isGiven ? "given" : "refused"): \(header ?? .null)", sourceLocation: sourceLocation)
        }

        @Test(arguments: [Request.Principal.Role.view, .control, .admin])
        func `every way keeps to the role, before and after the configuration is read again`(
            _ role: Request.Principal.Role
        ) async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1, configuration: Step(limit: "admin").text)
            let tokens = try bus.write("\(role.rawValue) \(Self.secret) desk\n", to: "tokens")
            let web = try await WebGateway(bus, settings: "tokens = \"\(tokens)\"")
            let tcp = try await RemoteGateway(bus)
            let pair = try tcp.add("desk", role)
            let probe = try RemoteProbe(tcp, pair)
            let media = try probe.socket(.dealer, .media)
            let page = try WebSocketProbe(web, headers: "Authorization: Bearer \(Self.secret)\r\n")
            _ = try page.until { $0["method"] == "web.hello" }
            for step in Self.steps {
                try await reload(bus, step, role)
                let given = AuthorizationRole(role)
                let (sees, hears) = (step.allows(.video, given), step.allows(.audio, given))
                let name = "\(role) with \(step)"
                // Requests.
                let status = try probe.call("authorization.status")
                let effective = min(given, AuthorizationRole(rawValue: step.limit) ?? AuthorizationRole.none)
                #expect(status["role"] == .string(effective.rawValue), "\(name)")
                for medium in AuthorizationMedia.allCases {
                    let word = step.allows(medium, given) ? "authorized" : "restricted"
                    #expect(status["authorization"]?[medium.rawValue] == .string(word), "\(name) \(medium)")
                }
                // Pictures over HTTP.
                let still = try await web.get("/camera/cam0.jpg?width=64", Self.mine)
                #expect(still.status == (sees ? 200 : 403), "\(name): \(String(decoding: still.body, as: UTF8.self))")
                let moving = try web.connect()
                moving.send(Self.movingPicture)
                #expect(moving.receiveHead().hasPrefix("HTTP/1.1 \(sees ? 200 : 403)"), "\(name)")
                // Over CURVE and over the WebSocket.
                for (topic, isGiven) in [(Self.picture, sees)] + Self.sounds.map({ ($0, hears) }) {
                    let what = "\(name): \(String(decoding: topic, as: UTF8.self))"
                    try expect(isGiven, "\(what) over CURVE") {
                        try media.send(MediaAsk(.next, topic: topic).bytes)
                        while let message = try probe.receive(media, within: 2) {
                            guard message[0].bytes.elementsEqual(topic) else { continue }
                            return try JSONValue(parsing: message[1].bytes)
                        }
                        return nil
                    }
                    try media.send(MediaAsk(.end, topic: topic).bytes)
                    try expect(isGiven, "\(what) over the WebSocket") {
                        page.send(binary: MediaAsk(.next, topic: topic).bytes)
                        while let message = try page.receiveBinary() {
                            if message.topic == String(decoding: topic, as: UTF8.self) { return message.header }
                        }
                        return nil
                    }
                    page.send(binary: MediaAsk(.end, topic: topic).bytes)
                }
                // The library.
                let list = try probe.ask("library.list")
                let isListed = if case .success? = list { true } else { false }
                #expect(isListed == step.allows(.library, given), "\(name): \(String(describing: list))")
            }
            // A key of another role, which the limit leaves at less.
            try tcp.revoke("desk")
            try tcp.add("desk", .view, pair)
            let again = try RemoteProbe(tcp, pair)
            try await eventually {
                try again.ask("bus.hello", ["client": "probe"], within: 1).map { try $0.get()["remote"]?["role"] }
                    == "view"
            }
            try await bus.stop()
        }

        @Test func `what runs ends within seconds, and says why`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1, configuration: Step(limit: "admin").text)
            let tokens = try bus.write("control \(Self.secret) desk\n", to: "tokens")
            let web = try await WebGateway(bus, settings: "tokens = \"\(tokens)\"")
            let tcp = try await RemoteGateway(bus)
            let probe = try RemoteProbe(tcp, try tcp.add("desk", .control))
            let media = try probe.socket(.dealer, .media)
            let page = try WebSocketProbe(web, headers: "Authorization: Bearer \(Self.secret)\r\n")
            let viewer = try web.connect()
            viewer.send(Self.movingPicture)
            #expect(viewer.receiveHead().hasPrefix("HTTP/1.1 200"))
            let topics = [Self.picture] + Self.sounds
            for topic in topics {
                for _ in 0..<8 {
                    try media.send(MediaAsk(.next, topic: topic).bytes)
                    page.send(binary: MediaAsk(.next, topic: topic).bytes)
                }
            }
            // A file that its reader leaves lying: more than the kernel holds for it.
            let started = try page.ask(1, "movie.start", ["device": "cam0"])["result"]
            let movie = try #require(started?["movie"]?.string)
            let ended = try page.ask(2, "movie.stop", ["movie": .string(movie)])["result"]
            let path = try #require(ended?["path"]?.string, "\(ended ?? .null)")
            #expect(truncate(path, 256 << 20) == 0)
            let name = path.split(separator: "/").last ?? ""
            let reader = try web.connect(receiveBuffer: 4096)
            reader.send(
                "GET /library/\(movie)/\(name) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(Self.secret)"
                    + "\r\n\r\n")
            #expect(reader.receiveHead().hasPrefix("HTTP/1.1 200"))

            try await reload(bus, Step(limit: "none"), .control)
            // The pictures end with a text in place of one, and the connection with them.
            var text: [UInt8] = []
            while case let more = viewer.receive(), !more.isEmpty { text = text.suffix(4096) + more }
            let last = String(decoding: text.suffix(600), as: UTF8.self)
            #expect(last.contains("text/plain") && last.contains("permission.remote_role"), "\(last)")
            #expect(last.hasSuffix("\r\n--camerabus-frame--\r\n"))
            // Each topic ends with its reason.
            var refused: Set<String> = []
            while refused.count < topics.count, let message = try probe.receive(media) {
                let topic = String(decoding: message[0].bytes, as: UTF8.self)
                if try JSONValue(parsing: message[1].bytes)["error"]?["reason"] == "unauthorized" {
                    refused.insert(topic)
                } else {
                    #expect(!refused.contains(topic))
                }
            }
            #expect(refused.count == topics.count)
            refused = []
            while refused.count < topics.count, let message = try page.receiveBinary() {
                if message.header?["error"]?["reason"] == "unauthorized" {
                    refused.insert(message.topic)
                } else {
                    #expect(!refused.contains(message.topic))
                }
            }
            // The file ends in its middle.
            var bytes = 0
            while case let more = reader.receive(atMost: 1 << 20), !more.isEmpty { bytes += more.count }
            #expect(bytes < 256 << 20)
            let log = web.program.standardError
            #expect(log.contains("a download ended") && log.contains("a stream of pictures ended"), "\(log)")
            // Nothing is made any more for those who may not have it.
            try await eventually { try bus.metric("worker_subscriptions{device=\"cam0\"}") == 0 }
            try await bus.stop()
        }
    }
}
