import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// What one client takes of a camera, and what is left for others.
    @Suite(.timeLimit(.minutes(5))) struct Shares {
        private static let sizes = (1...12).map { "bgr:\($0 * 16)x0" }

        /// Subscribes to each rendition over a connection of its own, and says of each how it fared.
        private static let taker = #"""
            import json, sys, zmq
            directory, *renditions = sys.argv[1:]
            poller, context = zmq.Poller(), zmq.Context()
            known = {}
            for rendition in renditions:
                sub = context.socket(zmq.SUB)
                sub.rcvhwm = 2
                sub.subscribe(f"frame/cam0/{rendition}/".encode())
                sub.connect(f"ipc://{directory}/media/cam0.sock")
                poller.register(sub, zmq.POLLIN)
            while True:
                for sub, _ in poller.poll():
                    header = json.loads(sub.recv_multipart()[1])
                    fate = header["error"]["reason"] if "error" in header else "frames"
                    if known.get(header["rendition"]) != fate:
                        known[header["rendition"]] = fate
                        print(fate, header["rendition"], flush=True)
            """#

        private func count(_ program: RunningProgram, _ fate: String) -> Int {
            program.standardOutput.split(separator: "\n").count { $0.hasPrefix(fate + " ") }
        }

        private func take(_ bus: BusHarness, as user: OtherUser) throws -> RunningProgram {
            try bus.start(
                OtherUser.python, ["-c", Self.taker, bus.directory.path] + Self.sizes, as: user)
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `a user who takes all renditions that he can leaves other users and root theirs`() async throws {
            let bus = try await BusHarness(
                virtual: 1, configuration: OtherUser.configuration + "[permission]\ndefault = \"view\"\n")
            let first = try take(bus, as: .first)
            try await eventually { count(first, "frames") + count(first, "limitExceeded") == Self.sizes.count }
            #expect(count(first, "frames") == 4, "\(first.standardOutput)")
            let second = try take(bus, as: .second)
            // He has the first one's four as well, which cost him nothing, and two of his own.
            try await eventually { count(second, "frames") + count(second, "limitExceeded") == Self.sizes.count }
            #expect(count(second, "frames") == 6, "\(second.standardOutput)")
            for rendition in ["native", "jpeg", "gray:80x0", "gray:96x0"] {
                _ = try FrameReader(bus, "cam0", rendition).next()
            }
            let rings = try RingConnection(bus.directory, "cam0")
            #expect(try rings.next() != nil)
            // The first one's were left alone, and he has the second one's two as well.
            try await eventually { count(first, "frames") == 6 }

            // Two of the first one's are in the second one's share now; for the other two there is no room in it.
            first.process.send(SIGKILL)
            _ = try await first.end()
            try await eventually { count(second, "limitExceeded") == 8 }
            #expect(second.standardError == "")
            try await bus.stop()
        }

        @Test func `a picture that the camera can't give costs nothing, and comes when it can`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let readers = try (1...12).map { try FrameReader(bus, "cam0", "bgr:\(4000 + $0)x0") }
            for reader in readers { #expect(try reader.error().reason == .formatUnsupported) }
            // Nobody keeps it open.
            try await bus.wait(for: "state/device/cam0/") { $0?["isOpen"] == false }
            #expect(try readers[0].error().reason == .formatUnsupported)
            _ = try FrameReader(bus, "cam0", "bgr:64x0").next()
            let small = try FrameReader(bus, "cam0", "gray:3000x0")
            #expect(try small.error().reason == .formatUnsupported)
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let change: JSONValue = [
                "device": "cam0", "activeFormat": ["width": 3840, "height": 2160],
            ]
            try client.call("device.configure", ["lock": lock, "changes": [change]])
            #expect(try small.next().header["width"] == 3000)
            try await bus.stop()
        }

        @Test func `a connection with too many subscriptions is told so, and others notice nothing`() async throws {
            let bus = try await BusHarness(virtual: 1)
            for (path, kind) in [(bus.directory.eventsSocket, "state"), (bus.directory.mediaSocket("cam0"), "frame")] {
                let other = try RawClient(.subscribe, path: path, topics: ["heartbeat/"])
                _ = try other.receive()
                let greedy = try RawClient(.subscribe, path: path)
                func acknowledge(_ nonce: String) throws -> JSONValue {
                    try greedy.socket.subscribe("ack/\(nonce)/")
                    while true {
                        let parts = try greedy.receive()
                        let body = try JSONValue(parsing: try #require(parts.dropFirst().first).bytes)
                        if parts.first?.bytes.elementsEqual("ack/\(nonce)/".utf8) == true { return body }
                    }
                }
                // In parts: more at once would be lost in the client's own queue.
                for part in 0..<3 {
                    for number in 0..<340 { try greedy.socket.subscribe("\(kind)/none\(part)-\(number)/native/") }
                    #expect(try acknowledge("part\(part)") == [:])
                }
                try greedy.socket.subscribe("\(kind)/cam0/native/")
                let error = try acknowledge("last")["error"]
                #expect(error?["reason"] == "limitExceeded" && error?["data"]?["limit"] == "subscriptions")
                for number in 0..<100 { try greedy.socket.unsubscribe("\(kind)/none0-\(number)/native/") }
                #expect(try acknowledge("less") == [:])
                _ = try other.receive()
            }
            try await bus.stop()
        }

        @Test func `a movie whose pictures nobody makes any more is refused with the limit`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            var others = try (1...8).map { try FrameReader(bus, "cam0", "gray:\($0 * 16)x0") }
            for other in others { _ = try other.next() }
            // Its frames are mirrored for it, and one rendition is free in time.
            try client.start("movie.start", ["device": "cam0", "mirrored": true])
            others.removeLast()
            let movie = try client.reply(within: 60).result.get()["movie"] ?? .null
            try client.call("movie.stop", ["movie": movie])
            others.append(try FrameReader(bus, "cam0", "gray:128x0"))
            _ = try others[7].next()
            try client.start("movie.start", ["device": "cam0", "mirrored": true])
            let error = try #require(throws: BusError.self) { try client.reply(within: 60).result.get() }
            #expect(error.reason == .limitExceeded && error.data["limit"] == "renditions")
            try await bus.stop()
        }

        @Test func `a session says when the rendition of its output is refused`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let inputs: JSONValue = [["device": "cam0"]]
            let outputs: JSONValue = [["type": "videoData", "width": 160]]
            let made = try client.call("session.create", ["inputs": inputs, "outputs": outputs])
            let session = try #require(made["session"])
            let started = try client.call("session.start", ["session": session])
            let rendition = try #require(started["resolved"]?.array?.first?["rendition"]?.string)
            #expect(started["resolved"]?.array?.first?["why"] == .null)
            var others = try (1...8).map { try FrameReader(bus, "cam0", "gray:\($0 * 16)x0") }
            for other in others { _ = try other.next() }
            let own = try FrameReader(bus, "cam0", rendition)
            #expect(try own.error().data["limit"] == "renditions")
            let topic = "state/session/\(session.string ?? "")/"
            let state = try await bus.wait(for: topic) { $0?["resolved"]?.array?.first?["why"]?.string != nil }
            #expect(state?["resolved"]?.array?.first?["why"]?.string?.contains("8 renditions") == true)
            others.removeLast()
            _ = try own.next()
            try await bus.wait(for: topic) { $0?["resolved"]?.array?.first?["why"] == .null }
            try await bus.stop()
        }
    }
}
