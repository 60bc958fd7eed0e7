import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Whatever comes in gets its error and costs nothing.
    @Suite(.timeLimit(.minutes(5))) struct HostileInput {
        private static let malformed: [(String, [UInt8], BusError.Reason)] = [
            ("nothing", [], .parseError),
            ("no JSON", Array("hello".utf8), .parseError),
            ("truncated", Array(#"{"jsonrpc":"2.0","id":1,"method":"bus.pi"#.utf8), .parseError),
            ("no UTF-8", [0x22, 0xC3, 0x28, 0x22], .parseError),
            ("two documents", Array("{}{}".utf8), .parseError),
            ("deeply nested", Array(String(repeating: "[", count: 100_000).utf8), .parseError),
            ("batch", Array("[]".utf8), .invalidRequest),
            ("wrong version", Array(#"{"jsonrpc":"1.0","id":1,"method":"bus.ping"}"#.utf8), .invalidRequest),
            ("method of wrong type", Array(#"{"jsonrpc":"2.0","id":1,"method":7}"#.utf8), .invalidRequest),
            (
                "params by position", Array(#"{"jsonrpc":"2.0","id":1,"method":"bus.ping","params":[1]}"#.utf8),
                .invalidRequest
            ),
            ("unknown method", Array(#"{"jsonrpc":"2.0","id":1,"method":"bus.pong"}"#.utf8), .methodNotFound),
            (
                "unknown member", Array(#"{"jsonrpc":"2.0","id":1,"method":"bus.ping","params":{"x":1}}"#.utf8),
                .invalidParams
            ),
            (
                "member of wrong type",
                Array(#"{"jsonrpc":"2.0","id":1,"method":"device.get","params":{"device":1}}"#.utf8),
                .invalidParams
            ),
            ("too large", [UInt8](repeating: 0x20, count: (1 << 20) + 1), .limitExceeded),
        ]

        @Test func `each malformed request gets its error, and the next good one its answer`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let client = try RawClient(path: bus.directory.commandSocket)
            for (what, body, reason) in Self.malformed {
                let reply = try client.exchange(body)
                guard case .failure(let error) = reply.result else {
                    Issue.record("\(what) was accepted")
                    continue
                }
                #expect(error.reason == reason, "\(what)")
                #expect(!error.message.isEmpty)
                _ = try client.call("bus.ping")
            }
            try await bus.stop()
        }

        @Test func `envelopes of every kind of client come back as they were`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let ping = Request(id: 1, method: "bus.ping").serialized
            let dealer = try RawClient(path: bus.directory.commandSocket)
            try dealer.send([ping])
            #expect(try dealer.receive().count == 1)
            try dealer.send([[9, 9], [8], [], ping])
            let mirrored = try dealer.receive()
            #expect(mirrored.dropLast().map { Array($0.bytes) } == [[9, 9], [8], []])
            let request = try RawClient(.request, path: bus.directory.commandSocket)
            try request.send([ping])
            #expect(try request.receive().count == 1)
            // Two frames where one should be.
            try dealer.send([[], ping, ping])
            guard case .failure(let error) = try dealer.reply().result else { throw RawClient.TimedOut() }
            #expect(error.reason == .invalidRequest)
            // A notification gets no reply: the next one is that of the request behind it.
            try dealer.send([[], Request(id: nil, method: "bus.ping").serialized])
            try dealer.send([[], Request(id: "after", method: "bus.ping").serialized])
            #expect(try dealer.reply().id == "after")
            try await bus.stop()
        }

        @Test func `a frame beyond the socket's limit ends its sender's connection and nobody else's`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let other = try RawClient(path: bus.directory.commandSocket)
            try other.call("bus.ping")
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.send([[], [UInt8](repeating: 0x20, count: (16 << 20) + 1)])
            #expect(throws: RawClient.TimedOut.self) { try client.receive(within: 1) }
            try other.call("bus.ping")
            try await bus.stop()
        }

        @Test(arguments: ["command", "events", "media"])
        func `a message without an end ends its sender's connection and nobody else's`(_ name: String) async throws {
            let bus = try await BusHarness(virtual: 1)
            let other = try RawClient(path: bus.directory.commandSocket)
            try other.call("bus.ping")
            let path =
                switch name {
                case "command": bus.directory.commandSocket
                case "events": bus.directory.eventsSocket
                default: bus.directory.mediaSocket("cam0")
                }
            let process = try #require(UnixSocket.listener(at: path)).pid
            let before = try #require(ProcessUsage.residentBytes(of: process))
            // Frames of nothing cost most, and frames that are long the fewest of them.
            let long = [3, 0, 0, 0, 0, 0, 0, 3, 0] + [UInt8](repeating: 0, count: 768)
            // Commands are one frame each, but libzmq waits for more.
            let command = [7, 0, 0, 0, 0, 0, 0, 3, 0, 9] + Array("SUBSCRIBE".utf8) + [UInt8](repeating: 0, count: 758)
            for frames in [[UInt8](repeatElement([1, 0], count: 16384).joined()), long, command] {
                let connection = try RawConnection(path: path)
                connection.open(as: name == "command" ? "DEALER" : "SUB")
                #expect(connection.send(frames, upTo: 256 << 20) < 64 << 20)
            }
            try other.call("bus.ping")
            let after = try #require(ProcessUsage.residentBytes(of: process))
            #expect(after - before < 128 << 20)
            try await eventually {
                try bus.metric(
                    name == "media" ? "worker_connectionsCutOff{device=\"cam0\"}" : "connections_cut_off_total") == 3
            }
            try await bus.stop()
        }

        @Test(arguments: ["events", "media"], ["no subscriptions", "ends of no subscriptions"])
        func `who sends an XPUB what it has no use for is cut off, and nobody waits for it`(
            _ name: String, _ what: String
        ) async throws {
            let bus = try await BusHarness(virtual: 1)
            let path = name == "events" ? bus.directory.eventsSocket : bus.directory.mediaSocket("cam0")
            let process = try #require(UnixSocket.listener(at: path)).pid
            let before = try #require(ProcessUsage.residentBytes(of: process))
            let message = [UInt8](repeating: 0x78, count: 250)
            let messages = repeatElement(
                RawConnection.message([what == "no subscriptions" ? 2 : 0] + message), count: 256)
            let bytes = [UInt8](messages.joined())
            for _ in 0..<8 {
                let connection = try RawConnection(path: path)
                connection.open(as: "SUB")
                #expect(connection.send(bytes, upTo: 256 << 20) < 64 << 20)
            }
            let other = try RawClient(.subscribe, path: path, topics: ["ack/1/"])
            #expect(try other.receive().first.map { Array($0.bytes) } == Array("ack/1/".utf8))
            let after = try #require(ProcessUsage.residentBytes(of: process))
            #expect(after - before < 96 << 20)
            try await eventually { bus.log.contains("a connection is closed for what its peer sends") }
            try await bus.stop()
        }

        @Test func `the requests of a user that wait are bounded, and others are answered`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let other = try RawClient(path: bus.directory.commandSocket)
            try other.call("bus.ping")
            let before = try memory(bus.pid)
            // ZMTP 3.0 by hand: a hundred connections at once, each with ten requests of a megabyte.
            let script = """
                import socket, sys, threading
                request = b"\\x02" + (1000000).to_bytes(8, "big") + b" " * 1000000
                def flood():
                    peer = socket.socket(socket.AF_UNIX)
                    peer.connect(sys.argv[1])
                    peer.sendall(b"\\xff" + bytes(8) + b"\\x7f\\x03\\x00NULL" + bytes(48))
                    peer.sendall(b"\\x04\\x1c\\x05READY\\x0bSocket-Type\\x00\\x00\\x00\\x06DEALER")
                    heard = b""
                    while len(heard) < 66:
                        part = peer.recv(4096)
                        if not part: return
                        heard += part
                    try:
                        for _ in range(10): peer.sendall(request)
                    except OSError: pass
                threads = [threading.Thread(target=flood) for _ in range(100)]
                for thread in threads: thread.start()
                for thread in threads: thread.join()
                """
            let flood = try ChildProcess(
                program: "python3", arguments: ["-c", script, bus.directory.commandSocket], searchesPath: true)
            while flood.reap() == nil { try other.call("bus.ping") }
            let lines = String(decoding: try File.read("/proc/\(bus.pid)/status", limit: 16384), as: UTF8.self)
            let peak = lines.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            let bytes = try #require(peak?.split(separator: " ").dropFirst().first.flatMap { Int($0) }) << 10
            #expect(bytes - before < 256 << 20)
            try await bus.stop()
        }

        @Test func `a hundred clients whose bus was stopped all come back`() async throws {
            let bus = try await BusHarness(virtual: 0)
            kill(bus.pid, SIGSTOP)
            let clients = try (0..<100).map { client in
                let topics = (0..<19).map { "event/photo/a-device-with-a-long-name-\(client)-\($0)/" }
                return try RawClient(
                    .subscribe, path: bus.directory.eventsSocket, topics: topics + ["ack/\(client)/"])
            }
            let callers = try (0..<25).map { _ in try RawClient(path: bus.directory.commandSocket) }
            for caller in callers { for _ in 0..<100 { try caller.start("bus.ping") } }
            kill(bus.pid, SIGCONT)
            for (number, client) in clients.enumerated() {
                #expect(try client.receive().first.map { Array($0.bytes) } == Array("ack/\(number)/".utf8))
            }
            for caller in callers { for _ in 0..<100 { _ = try caller.reply() } }
            #expect(try bus.metric("connections_cut_off_total") == 0)
            try await bus.stop()
        }

        @Test func `clients that never read cost a bounded amount of memory`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let before = try memory(bus.pid)
            let clients = try (0..<8).map { _ in try RawClient(path: bus.directory.commandSocket) }
            for client in clients {
                try client.socket.set(.receiveHighWaterMark, 1)
                for _ in 0..<2000 { try client.start("bus.methods") }
            }
            let observer = try RawClient(path: bus.directory.commandSocket)
            try await eventually {
                let counters = try observer.call("bus.metrics")["counters"]
                return counters?["replies_dropped_total"]?.integer ?? 0 > 0
            }
            // Two seconds' worth of requests were answered; what could not be delivered was dropped and counted.
            #expect(try memory(bus.pid) - before < 128 << 20)
            withExtendedLifetime(clients) {}
            try await bus.stop()
        }

        @Test func `a client that asks ahead and reads gets every reply`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let client = try RawClient(path: bus.directory.commandSocket)
            // So that the coordinator finds the next request as soon as it has answered one, and its replies come in a
            // row of any length.
            for _ in 0..<8 { try client.start("bus.ping") }
            for _ in 0..<10_000 {
                _ = try client.reply()
                try client.start("bus.ping")
            }
            for _ in 0..<8 { _ = try client.reply() }
            #expect(try client.call("bus.metrics")["counters"]?["replies_dropped_total"]?.integer == 0)
            try await bus.stop()
        }

        @Test func `a client that goes on subscribing is cut off, and nobody else`() async throws {
            let bus = try await BusHarness(virtual: 1)
            for path in [bus.directory.eventsSocket, bus.directory.mediaSocket("cam0")] {
                let other = try RawClient(.subscribe, path: path, topics: ["heartbeat/"])
                _ = try other.receive()
                let before = try memory(bus.pid)
                let greedy = try RawClient(.subscribe, path: path)
                for number in 0..<20_000 {
                    try greedy.socket.subscribe("\(number)/\(String(repeating: "x", count: 500))")
                }
                _ = try other.receive()
                _ = try other.receive()
                #expect(try memory(bus.pid) - before < 64 << 20)
                withExtendedLifetime(greedy) {}
            }
            try await bus.stop()
        }

        @Test func `five thousand connections end nothing, under a low limit of open files too`() async throws {
            let bus = try await BusHarness(virtual: 1, descriptorLimit: 1024)
            CurrentProcess.raiseDescriptorLimit()
            var held: [FileDescriptorBox] = []
            for _ in 0..<5000 {
                if let connection = connect(to: bus.directory.commandSocket) { held.append(connection) }
            }
            #expect(held.count == 5000)
            held = []
            let client = try RawClient(path: bus.directory.commandSocket)
            let counters = try client.call("bus.metrics")["counters"]
            #expect(counters?["connections_refused_total"]?.integer ?? 0 > 0)
            let lines = bus.log.split(separator: "\n").filter { $0.contains("connections can't be accepted") }
            #expect(lines.count <= 1, "\(lines)")
            #expect(try client.call("device.list")["devices"]?.array?.count == 1)
            try await bus.stop()
        }

        /// Resident bytes of a process.
        private func memory(_ pid: Int32) throws -> Int {
            let text = String(decoding: try File.read("/proc/\(pid)/statm", limit: 256), as: UTF8.self)
            return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096
        }

        private final class FileDescriptorBox {
            let owner: FileDescriptor
            init(_ raw: Int32) { owner = FileDescriptor(owning: raw) }
        }

        private func connect(to path: String) -> FileDescriptorBox? {
            let raw = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            guard raw >= 0 else { return nil }
            let box = FileDescriptorBox(raw)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            return result == 0 ? box : nil
        }
    }
}
