import BusClient
import BusProtocol
import CameraBusTesting
import CaptureCore
import FrameRing
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Frames in shared memory: what becomes of them when what made them ends.
    @Suite(.timeLimit(.minutes(5))) struct RingLives {
        /// A ring, as it comes over a connection.
        private func ring(_ socket: PacketSocket) throws -> RingReader {
            while true {
                try #require(socket.waitUntilReadable(until: Deadline.usual.time), "no ring came")
                let packet = try #require(try socket.receive(maximumBytes: 65536))
                try #require(!packet.isEnd, "the worker has gone")
                if let descriptor = packet.descriptor { return try RingReader(descriptor) }
            }
        }

        private func frame(_ reader: RingReader) throws -> RingFrame {
            guard case .frame(let frame) = reader.wait(until: Deadline.usual.time) else {
                throw TestingError("no frame came")
            }
            return frame
        }

        private func configure(_ client: RawClient, _ width: Int64, _ height: Int64) throws {
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let change: JSONValue = [
                "device": "cam0", "frameRate": 15,
                "activeFormat": ["pixelFormat": "YUYV", "width": .integer(width), "height": .integer(height)],
            ]
            try client.call("device.configure", ["lock": lock, "changes": [change]])
            try client.call("device.unlock", ["lock": lock])
        }

        @Test func `what a reader holds stays as it was through a change of format, a kill and the end`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            try configure(client, 320, 240)
            let socket = try PacketSocket(connectingTo: bus.directory.ringSocket("cam0"))
            _ = try socket.send(Array(#"{"rendition":"native"}"#.utf8))
            let first = try ring(socket)
            var last = try frame(first)

            // The worker says that this ring is over, and nobody writes there any more.
            try configure(client, 640, 360)
            while case .frame(let frame) = first.wait(until: Deadline.usual.time) { last = frame }
            #expect(first.isClosed)
            let second = try ring(socket)
            #expect(second.plan.description.width == 640)
            #expect(second.plan.description.ring != first.plan.description.ring)
            let held = last
            let picture = try #require(first.use(held) { Array($0) })

            // A worker that is killed can't say it; the connection ends.
            let other = try frame(second)
            let pid = try #require(try bus.workerPID("cam0"))
            kill(pid, SIGKILL)
            repeat {
                try #require(socket.waitUntilReadable(until: Deadline.usual.time))
            } while try socket.receive(maximumBytes: 65536)?.isEnd == false
            #expect(!second.isClosed)
            let left = second.poll() ?? other
            #expect(second.use(left) { $0.count } == 640 * 360 * 2)

            // The next worker makes a ring of its own, in the same format.
            var next: (socket: PacketSocket, reader: RingReader)?
            try await eventually {
                guard let socket = try? PacketSocket(connectingTo: bus.directory.ringSocket("cam0")) else {
                    return false
                }
                _ = try? socket.send(Array(#"{"rendition":"native"}"#.utf8))
                next = (try? ring(socket)).map { (socket, $0) }
                return next != nil
            }
            let third = try #require(next).reader
            #expect(third.plan.description.width == 640)
            #expect(third.plan.description.stream != second.plan.description.stream)
            _ = try frame(third)
            try await bus.stop()

            let isSame = first.use(held) { $0.elementsEqual(picture) }
            #expect(isSame == true)
            #expect(second.use(left) { $0.count } == 640 * 360 * 2)
            #expect(third.isClosed)
        }

        @Test func `a reader learns that the worker was killed, in Swift and in Python`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let rings = try RingConnection(bus.directory, "cam0")
            _ = try #require(try rings.next())
            let program = """
                import sys
                from camerabus import BusNotRunning, RingConnection
                with RingConnection(sys.argv[1]) as rings:
                    assert rings.next() is not None
                    print("reads", flush=True)
                    try:
                        while rings.next(60) is not None: pass
                    except BusNotRunning: print("gone", flush=True)
                """
            let python = try bus.start(
                Programs.python, ["-c", program, bus.directory.ringSocket("cam0")],
                environment: ["PYTHONPATH": Programs.pythonPath])
            try await eventually { python.standardOutput == "reads\n" || !python.standardError.isEmpty }
            try #require(python.standardOutput == "reads\n", "\(python.standardError)")
            kill(try #require(try bus.workerPID("cam0")), SIGKILL)
            let error = #expect(throws: ClientError.self) {
                while try rings.next(timeout: .seconds(60)) != nil {}
            }
            guard case .system = error else {
                Issue.record("\(error as Any)")
                return
            }
            let result = try await python.end()
            #expect(result.status == 0 && result.standardOutput == "reads\ngone\n", "\(result)")
            try await bus.stop()
        }

        /// The size of a file stands for all limits here: it is one that a test can set.
        @Test func `a picture for whose ring there is no memory is refused, with what to do`() async throws {
            let bus = try await BusHarness(virtual: 1, fileSizeLimit: 64 << 20)
            let client = try RawClient(path: bus.directory.commandSocket)
            try configure(client, 3840, 2160)
            let media = try RawClient(
                .subscribe, path: bus.directory.mediaSocket("cam0"), topics: ["buffer/cam0/native/"])
            var error: BusError?
            let deadline = Deadline.usual
            while error == nil, !deadline.hasPassed {
                let parts = try media.receive(within: 20)
                error = try JSONValue(parsing: try #require(parts.dropFirst().first).bytes)["error"].map {
                    BusError(header: $0)
                }
            }
            #expect(error?.reason == .limitExceeded)
            #expect(error?.message.contains("ulimit -f") == true, "\(error?.message ?? "")")
            // What fits goes on as if nothing had been.
            try configure(client, 320, 240)
            let rings = try RingConnection(bus.directory, "cam0")
            var frame: RingFrame?
            // The refusal may still be told once.
            try await eventually {
                frame = try? rings.next(timeout: .seconds(1))
                return frame != nil
            }
            #expect(frame?.record.bytes == 320 * 240 * 2)
            try await bus.stop()
        }
    }
}
