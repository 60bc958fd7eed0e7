import BusClient
import BusProtocol
import CameraBusTesting
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Clients on other machines, through the real gateway.
    @Suite(.timeLimit(.minutes(5))) struct Remote {
        private func bus() async throws -> (BusHarness, RemoteGateway) {
            let bus = try await BusHarness(virtual: 1)
            return (bus, try await RemoteGateway(bus))
        }

        private func lock(_ bus: BusHarness) throws -> JSONValue? {
            let answer = try RawClient(path: bus.directory.commandSocket).call("device.get", ["device": "cam0"])
            return answer["device"]?["lock"]
        }

        private func remote(_ bus: BusHarness, _ gateway: RemoteGateway, _ pair: CurveKeyPair) throws -> RemoteBus {
            let text = KeyFile.text(publicKey: pair.publicKey.text, secretKey: pair.secretKey.text, name: "desk")
            return try RemoteBus(
                "tcp://127.0.0.1:\(gateway.port)", serverKey: gateway.serverKey.text,
                keyFile: try bus.write(text, to: "desk.key"))
        }

        @Test func `a client with a view key says hello, watches and gets frames, and may change nothing`() async throws
        {
            let (bus, gateway) = try await bus()
            let probe = try RemoteProbe(gateway, try gateway.add("laptop", .view))
            let hello = try probe.call("bus.hello", ["client": "probe"])
            #expect(hello["remote"] == ["name": "laptop", "role": "view"] && hello["you"]?["pid"] == 0)
            #expect(hello["you"]?["uid"] == JSONValue(RemoteUser.uid(named: "laptop")))
            #expect(hello["endpoints"]?["media"]?["cam0"] == .string("tcp://*:\(gateway.port + 2)"))
            #expect(try probe.call("device.list")["devices"]?.array?.count == 1)

            let events = try probe.socket(.subscribe, .events, topics: ["welcome/", "state/device/cam0/"])
            let topics = [try probe.receive(events), try probe.receive(events)].map { message in
                message?.first.map { String(decoding: $0.bytes, as: UTF8.self) }
            }
            #expect(topics == ["welcome/", "state/device/cam0/"])
            try events.subscribe("ack/abc/")
            var last = ""
            while last != "ack/abc/", let message = try probe.receive(events) {
                last = message.first.map { String(decoding: $0.bytes, as: UTF8.self) } ?? ""
            }
            #expect(last == "ack/abc/")

            let media = try probe.socket(.dealer, .media)
            let topic = Topic.frame("cam0", "jpeg:320x180").bytes
            try media.send(MediaAsk(.next, topic: topic).bytes)
            let frame = try #require(try probe.receive(media))
            #expect(frame.count == 3 && frame[0].bytes.elementsEqual(topic) && frame[2].count > 100)
            #expect(try JSONValue(parsing: frame[1].bytes)["width"] == 320)
            // Which there are the gateway is told of in its first second.
            var refusal: JSONValue?
            for _ in 0..<60 where refusal == nil {
                try media.send(MediaAsk(.next, topic: Topic.frame("nosuch", "jpeg").bytes).bytes)
                refusal = try probe.receive(media, within: 0.2)?.last.map { try JSONValue(parsing: $0.bytes) }
            }
            #expect(refusal?["error"]?["reason"] == "deviceNotFound", "\(refusal ?? .null)")
            // Without asking for it, nothing more.
            #expect(try probe.receive(media, within: 0.5)?.count == nil)

            let lock = try probe.refusal("device.lock", ["devices": "cam0"])
            #expect(lock?.reason == .unauthorized && lock?.data["needed"] == "control")
            let shutdown = try probe.refusal("bus.shutdown")
            #expect(shutdown?.reason == .unauthorized && shutdown?.message.contains("role 'view'") == true)
            try await bus.stop()
        }

        @Test func `the client library is the same over TCP`() async throws {
            let (bus, gateway) = try await bus()
            let remote = try remote(bus, gateway, try gateway.add("desk", .control))
            let client = try await Client.connect(to: .remote(remote), name: "probe", timeout: .seconds(20))
            #expect(client.greeting.pid == 0 && client.directory == nil)
            #expect(try await client.devices().compactMap { $0["id"]?.string } == ["cam0"])
            let frames = try await client.frames("cam0")
            let (first, second) = (try await frames.next(), try await frames.next())
            #expect(first.json["format"] == "JPEG" && second.json["format"] == "JPEG")
            #expect(second.json["sequence"]?.integer ?? 0 > first.json["sequence"]?.integer ?? 0)
            let observer = try await client.observe(["state/device/cam0/"])
            let lock = try await client.lock(["cam0"])
            _ = try await observer.wait(for: "state/device/cam0/") { $0?["lock"]?["holder"]?["name"] == "desk" }
            try await client.unlock(lock)
            await client.close()
            try await bus.stop()
        }

        @Test func `who was connected goes on trying while it is not let in`() async throws {
            let (bus, gateway) = try await bus()
            let pair = try gateway.add("desk", .control)
            let remote = try remote(bus, gateway, pair)
            let client = try await Client.connect(to: .remote(remote), name: "probe", timeout: .seconds(20))
            try gateway.revoke("desk")
            await client.waitUntilCut()
            let call = Task { try await client.call("device.list", timeout: .seconds(60)) }
            // By then the client has looked as well, and not only once.
            for _ in 0..<3 { #expect(await remote.obstacle() == .notLetIn(key: pair.publicKey.text)) }
            try gateway.add("desk", .control, pair)
            #expect(try await call.value["devices"]?.array?.count == 1)
            await client.close()
            try await bus.stop()
        }

        @Test func `an unknown key gets nothing and no data is sent unencrypted`() async throws {
            let (bus, gateway) = try await bus()
            let probe = try RemoteProbe(gateway, try CurveKeyPair.make())
            #expect(try probe.ask("bus.ping", within: 1) == nil)
            try await eventually { gateway.program.standardError.contains("client refused") }
            // Nor does who knows no encryption at all.
            let context = try Context()
            let plain = try Socket(context, .dealer)
            try plain.connect("tcp://127.0.0.1:\(gateway.port)")
            try plain.send(frames: [[], Request(id: 1, method: "bus.ping").serialized])
            #expect(try probe.receive(plain, within: 1)?.count == nil)
            try await bus.stop()
        }

        @Test func `a lock of a client has a lease and its name`() async throws {
            let (bus, gateway) = try await bus()
            let probe = try RemoteProbe(gateway, try gateway.add("desk", .control))
            let lock = try probe.call("device.lock", ["devices": "cam0", "lease": 3000])
            #expect(lock["holder"]?["name"] == "desk")
            let state = try RawClient(path: bus.directory.commandSocket).call("device.locks")["locks"]?[0]
            #expect(state?["lease"] == 3000 && state?["holder"]?["pid"] == 0)
            try await bus.wait(for: "state/device/cam0/") { $0?["lock"] == .null }
            _ = try probe.call("device.lock", ["devices": "cam0"])
            let next = try RawClient(path: bus.directory.commandSocket).call("device.locks")["locks"]?[0]
            #expect(next?["lease"] == 10_000)
            try await bus.stop()
        }

        @Test func `a key that is revoked loses all within a second`() async throws {
            let (bus, gateway) = try await bus()
            let (pair, other) = (try gateway.add("desk", .control), try gateway.add("other", .view))
            let (probe, witness) = (try RemoteProbe(gateway, pair), try RemoteProbe(gateway, other))
            _ = try probe.call("device.lock", ["devices": "cam0", "lease": 60_000])
            let media = try probe.socket(.dealer, .media)
            let topic = Topic.frame("cam0", "jpeg:320x180").bytes
            try media.send(MediaAsk(.next, topic: topic).bytes)
            #expect(try probe.receive(media)?.isEmpty == false)
            let events = try probe.socket(.subscribe, .events, topics: ["heartbeat/"])
            #expect(try probe.receive(events)?.isEmpty == false)
            _ = try witness.call("bus.ping")

            try gateway.revoke("desk")
            try await bus.wait(for: "state/device/cam0/") { $0?["lock"] == .null }
            #expect(try probe.ask("bus.ping", within: 1) == nil)
            try media.send(MediaAsk(.next, topic: topic).bytes)
            #expect(try probe.receive(media, within: 1)?.count == nil)
            // A heartbeat comes once a second.
            while try events.receive() != nil {}
            #expect(try probe.receive(events, within: 2)?.count == nil)
            try await eventually { gateway.program.standardError.contains("a key was revoked") }
            // Others are where they were.
            _ = try witness.call("bus.ping")
            try await bus.stop()
        }

        @Test func `methods that need the same machine are refused`() async throws {
            let (bus, gateway) = try await bus()
            let probe = try RemoteProbe(gateway, try gateway.add("desk", .control))
            let path = try probe.refusal("movie.start", ["device": "cam0", "path": "/tmp/a.mp4"])
            #expect(path?.reason == .pathNotAllowed && path?.data["roots"] == [])
            let format: JSONValue = ["pixelFormat": "BGR3", "width": 64, "height": 64]
            let source = try probe.refusal("source.create", ["name": "mine", "format": format])
            #expect(source?.reason == .unauthorized && source?.data["needed"] == "local")
            try await bus.stop()
        }

        @Test func `everything of a client ends when the client ends`() async throws {
            let (bus, gateway) = try await bus()
            let pair = try gateway.add("desk", .control)
            let session: String
            do {
                let probe = try RemoteProbe(gateway, pair)
                let made = try probe.call("session.create", ["inputs": ["cam0"], "preset": "640x480"])
                session = try #require(made["session"]?.string)
                #expect(try probe.call("session.start", ["session": .string(session)])["state"]?["state"] == "running")
            }
            // Another doesn't wait for its answer: its request and its end come to the gateway at the same time.
            let other = try gateway.add("other", .control)
            func sendAndGo() throws {
                do {
                    let context = try Context()
                    let socket = try Socket(context, .dealer)
                    let told = try Socket(context, .pair)
                    try socket.startMonitor(at: "inproc://told", events: [.handshakeSucceeded])
                    try told.connect("inproc://told")
                    try socket.setCurveClient(server: gateway.serverKey, own: other)
                    try socket.set(.linger, 10_000)
                    try socket.connect("tcp://127.0.0.1:\(gateway.port)")
                    #expect(try RemoteProbe(gateway, pair).receive(told) != nil)
                    gateway.program.process.send(SIGSTOP)
                    let request = Request(id: 1, method: "session.create", params: ["inputs": ["cam0"]])
                    try socket.send(frames: [[], request.serialized])
                }
                gateway.program.process.send(SIGCONT)
            }
            let client = try RawClient(path: bus.directory.commandSocket)
            func owners() throws -> [JSONValue?] {
                try client.call("session.list")["sessions"]?.array?.map { $0["owner"]?["name"] } ?? []
            }
            // Seldom the end is noticed before the request is read, which is lost then.
            var hasCome = false
            for _ in 0..<5 where !hasCome {
                try sendAndGo()
                hasCome = (try? await eventually(by: .after(seconds: 5)) { try owners().contains("other") }) != nil
            }
            #expect(hasCome)
            try await bus.wait(for: "state/session/\(session)/") { $0 == nil || $0 == .null }
            try await eventually { try owners().isEmpty }
            try await bus.stop()
        }

        @Test func `too many requests are refused, and others' are not`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let gateway = try await RemoteGateway(bus, settings: "requests_per_second = 2")
            let probe = try RemoteProbe(gateway, try gateway.add("desk", .control))
            let other = try RemoteProbe(gateway, try gateway.add("other", .control))
            var refused: BusError?
            for _ in 0..<20 { refused = try probe.refusal("bus.ping") ?? refused }
            #expect(refused?.reason == .limitExceeded && refused?.data["limit"] == "requestRate")
            _ = try other.call("bus.ping")
            try await bus.stop()
        }

        @Test func `a key has so many connections, wherever it comes from, and others have theirs`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let gateway = try await RemoteGateway(bus, settings: "connections_per_address = 3")
            let (pair, other) = (try gateway.add("desk", .view), try gateway.add("other", .view))
            let probe = try RemoteProbe(gateway, other)
            let context = try Context()
            var (sockets, isAnswered): ([Socket], [Bool]) = ([], [])
            for source in ["127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3"] {
                let socket = try gateway.socket(.dealer, .command, pair, in: context, from: source)
                try socket.send(frames: [[], Request(id: 1, method: "bus.ping").serialized])
                sockets.append(socket)
                isAnswered.append(try probe.receive(socket, within: sockets.count < 4 ? 15 : 1) != nil)
            }
            #expect(isAnswered == [true, true, true, false])
            _ = try probe.call("bus.ping")
            try await bus.stop()
        }
    }

    /// As a second user of the machine meets it.
    @Suite(
        .timeLimit(.minutes(5)),
        .enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")")) struct RemoteImpostor
    {
        @Test func `only a gateway asks for others`() async throws {
            let user = OtherUser.first
            let script = """
                import json, sys, zmq
                socket = zmq.Context().socket(zmq.DEALER)
                socket.connect("ipc://" + sys.argv[1] + "/command.sock")
                socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "device.lock", "params": {"devices": "cam0"},
                    "for": {"name": "desk", "role": "control"}}).encode())
                reply = json.loads(socket.recv())
                print(reply.get("error", {}).get("data", {}).get("needed", "locked"))
                """
            for (gateway, expected) in [("", "gateway\n"), ("gateway = \"\(user.uid)\"\n", "locked\n")] {
                let bus = try await BusHarness(
                    virtual: 1, configuration: OtherUser.configuration + "[permission]\n\(gateway)")
                let result = try await bus.run(OtherUser.python, ["-c", script, bus.directory.path], as: user)
                #expect(result.standardOutput == expected, "\(result)")
                try await bus.stop()
            }
        }
    }

    /// Two machines, as far as the network goes.
    @Suite(
        .timeLimit(.minutes(5)),
        .enabled(if: NetworkNamespace.isPossible, "left out: \(NetworkNamespace.obstacle ?? "")")) struct RemoteMachine
    {
        private static let holder = """
            import sys
            from camerabus import Client
            client = Client(sys.argv[1], server_key=sys.argv[2], key=(sys.argv[3], sys.argv[4]), name="holder")
            lock = None
            with client.frames("cam0", rendition="gray:64x0", timeout=30) as frames:
                for frame in frames:
                    # Frames come by now, so that they are often enough.
                    lock = lock or client.lock("cam0", lease=2.0)
                    lock.renew()
                    print(frame.timestamp.monotonic, flush=True)
            """

        @Test func `a lock of a client that is cut off ends with its lease`() async throws {
            let machine = try NetworkNamespace()
            let bus = try await BusHarness(virtual: 1)
            let gateway = try await RemoteGateway(bus, host: "*")
            let pair = try gateway.add("desk", .control)
            let arguments = [
                "-c", Self.holder, "tcp://\(machine.here):\(gateway.port)", gateway.serverKey.text, pair.publicKey.text,
                pair.secretKey.text,
            ]
            let program = try bus.start(
                "ip", machine.arguments(Programs.python, arguments), environment: ["PYTHONPATH": Programs.pythonPath])
            // For longer than its lease, as the frames with which it is renewed tell.
            try await eventually {
                let times = program.standardOutput.split(separator: "\n").compactMap { Int64($0) }
                return (times.last ?? 0) - (times.first ?? 0) > 3_000_000_000
            }
            #expect(try RawClient(path: bus.directory.commandSocket).call("device.locks")["locks"]?.array?.count == 1)
            try machine.cut()
            try await bus.wait(for: "state/device/cam0/") { $0?["lock"] == .null }
            try await bus.stop()
        }

        /// Writes down all that goes over a wire, as tcpdump does.
        private static let sniffer = """
            import socket, struct, sys
            wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            wire.bind((sys.argv[1], 0))
            file = open(sys.argv[2], "wb", buffering=0)
            file.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1))
            print("listening", flush=True)
            while packet := wire.recv(1 << 18):
                file.write(struct.pack("=IIII", 0, 0, len(packet), len(packet)) + packet)
            """

        private static let visitor = """
            import sys, zmq
            from camerabus import BusTimeout, Client, Unauthorized
            address, server, public, secret = sys.argv[1:]
            with Client(address, server_key=server, key=(public, secret), name="tattletale", timeout=30) as client:
                with client.frames("cam0", rendition="jpeg:320x180", limit=3, timeout=30) as frames:
                    print(*(frame.format for frame in frames))
                try:
                    client.lock("cam0")
                except Unauthorized as error:
                    print(error.needed)
            stranger = tuple(each.decode() for each in zmq.curve_keypair())
            try:
                Client(address, server_key=server, key=stranger, timeout=1)
            except BusTimeout:
                print("nothing")
            """

        @Test func `a view key sees and changes nothing, a stranger gets nothing, and nothing is read on the wire`()
            async throws
        {
            let machine = try NetworkNamespace()
            let bus = try await BusHarness(virtual: 1)
            let gateway = try await RemoteGateway(bus, host: "*")
            let pair = try gateway.add("desk", .view)
            let capture = "\(bus.scratchPath)/wire.pcap"
            let sniffer = try bus.start(Programs.python, ["-c", Self.sniffer, machine.wire, capture])
            try await eventually { sniffer.standardOutput == "listening\n" }
            let arguments = [
                "-c", Self.visitor, "tcp://\(machine.here):\(gateway.port)", gateway.serverKey.text,
                pair.publicKey.text, pair.secretKey.text,
            ]
            let result = try await bus.run(
                "ip", machine.arguments(Programs.python, arguments), environment: ["PYTHONPATH": Programs.pythonPath])
            #expect(result.standardOutput == "JPEG JPEG JPEG\ncontrol\nnothing\n", "\(result)")
            // The frames alone are more, and what is told in the clear is what the encryption is called.
            try await eventually { (try? File.read(capture, limit: 64 << 20))?.count ?? 0 > 10_000 }
            let wire = try File.read(capture, limit: 64 << 20)
            #expect(wire.contains(Array("CURVE".utf8)))
            let words = ["tattletale", "bus.hello", "jsonrpc", "frame/cam0/", "\"width\":", pair.secretKey.text]
            for word in words { #expect(!wire.contains(Array(word.utf8)), "\(word)") }
            if Self.hasTshark {
                let filter = words.dropLast().map { "frame contains \"\($0.replacing("\"", with: "\\\""))\"" }
                let found = try await bus.run(
                    "tshark", ["-r", capture, "-Y", filter.joined(separator: " || ")])
                #expect(found.status == 0 && found.standardOutput.isEmpty, "\(found)")
            }
            try await bus.stop()
        }

        private static let hasTshark = access("/usr/bin/tshark", X_OK) == 0
    }
}
