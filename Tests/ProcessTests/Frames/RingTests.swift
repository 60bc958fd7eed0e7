import BusClient
import BusProtocol
import CameraBusTesting
import CaptureCore
import FrameRing
import Glibc
import JSON
import LinuxIO
import Synchronization
import Testing

extension ProcessTests {
    /// Frames in shared memory through the whole system: who reads them, who stops reading, and who wants to do harm.
    @Suite(.timeLimit(.minutes(5))) struct Rings {
        private static let rendition = "native@10"

        /// Reads each frame of a ring on a thread of its own: what came, and what did not.
        private final class Witness: Sendable {
            private struct Seen {
                var numbers: [UInt64] = []
                var skipped: UInt64 = 0
                var streams: Set<String> = []
                var failure: String?
            }

            private let seen = Mutex(Seen())
            private let isEnding = Atomic<Bool>(false)
            private let thread = Mutex<NamedThread?>(nil)

            init(_ bus: BusHarness, _ device: String) throws {
                let directory = bus.directory
                let started = try NamedThread(name: "witness") { [self] in
                    do {
                        let rings = try RingConnection(directory, device, Rings.rendition)
                        while !isEnding.load(ordering: .relaxed) {
                            guard let frame = try rings.next(.next, timeout: .seconds(1)) else { continue }
                            seen.withLock { seen in
                                seen.numbers.append(frame.record.captureSequence)
                                seen.skipped += frame.skipped
                                seen.streams.insert(rings.ring?.stream ?? "")
                            }
                        }
                    } catch {
                        seen.withLock { $0.failure = "\(error)" }
                    }
                }
                thread.withLock { $0 = started }
            }

            /// The driver's numbers of the frames so far, which all came.
            var numbers: [UInt64] {
                get throws {
                    let seen = seen.withLock { $0 }
                    guard seen.failure == nil, seen.skipped == 0, seen.streams.count <= 1 else {
                        throw TestingError("The witness has missed \(seen.skipped): \(seen.failure ?? "no error").")
                    }
                    return seen.numbers
                }
            }

            func join() {
                isEnding.store(true, ordering: .relaxed)
                thread.withLock { thread in
                    thread?.join()
                    thread = nil
                }
            }
        }

        private static func python(_ bus: BusHarness, _ script: String, _ arguments: String...) throws -> RunningProgram
        {
            try bus.start(
                Programs.python, ["-c", script] + arguments, environment: ["PYTHONPATH": Programs.pythonPath])
        }

        /// Lines of two numbers: a frame's, and how many were missed before it.
        private static func lines(_ program: RunningProgram) -> [(number: UInt64, missed: UInt64)] {
            program.standardOutput.split(separator: "\n", omittingEmptySubsequences: false).dropLast().compactMap {
                line in
                let numbers = line.split(separator: " ").compactMap { UInt64($0) }
                return numbers.count == 2 ? (numbers[0], numbers[1]) : nil
            }
        }

        private static let ringReader = """
            import os, sys, camerabus
            directory = os.environ["CAMERABUS_RUNTIME_DIR"]
            with camerabus.RingConnection(f"{directory}/media/cam0.ring", sys.argv[1]) as ring:
                for frame in ring:
                    print(frame.captureSequence, frame.lost, flush=True)
            """
        private static let frameReader = """
            import sys, camerabus
            with camerabus.Client() as client, client.frames("cam0", rendition=sys.argv[1], shared=sys.argv[2] == "1") as frames:
                for frame in frames:
                    print(frame.captureSequence, frame.lost, flush=True)
            """

        @Test func `readers that are stopped disturb nobody, and know afterwards how many they missed`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let witness = try Witness(bus, "cam0")
            defer { witness.join() }
            let other = try FrameReader(bus, "cam0", Self.rendition)
            let start = try other.next()
            let readers = [
                try Self.python(bus, Self.ringReader, Self.rendition),
                try Self.python(bus, Self.frameReader, Self.rendition, "0"),
                try Self.python(bus, Self.frameReader, Self.rendition, "1"),
            ]
            try await eventually { readers.allSatisfy { Self.lines($0).count >= 3 } }
            for reader in readers { reader.process.send(SIGSTOP) }
            // They may be in the midst of a line: from here on they write no more.
            try await eventually { readers.allSatisfy { Self.isStopped($0.process.pid) } }
            let before = try witness.numbers.last ?? 0
            let counts = readers.map { Self.lines($0).count }
            // The frames of ten seconds: what they miss is what is published, however long that takes.
            try await eventually(by: .after(seconds: 60)) { try witness.numbers.filter { $0 > before }.count >= 100 }
            #expect(readers.map { Self.lines($0).count } == counts)
            let after = try #require(try witness.numbers.last)
            for reader in readers { reader.process.send(SIGCONT) }
            try await eventually { readers.allSatisfy { (Self.lines($0).last?.number ?? 0) > after + 3 } }

            // The frames by message: the same ones, but for those whose numbers are missing.
            var byMessage = [start]
            while let last = byMessage.last, last.captureSequence < after { byMessage.append(try other.next()) }
            let lines = readers.map(Self.lines)
            let end = lines.compactMap { $0.last?.number }.max() ?? 0
            try await eventually { try witness.numbers.last ?? 0 >= end }
            let numbers = try witness.numbers
            for (one, next) in zip(byMessage, byMessage.dropFirst()) where one.captureSequence >= numbers[0] {
                let between = numbers.count { one.captureSequence < $0 && $0 < next.captureSequence }
                #expect(next.stream == one.stream && next.sequence == one.sequence + Int64(between) + 1)
            }
            for (lane, lines) in zip(["ring", "frame", "buffer"], lines) {
                var most: UInt64 = 0
                for (one, next) in zip(lines, lines.dropFirst()) where one.number >= numbers[0] {
                    let between = numbers.count { one.number < $0 && $0 < next.number }
                    #expect(next.missed == UInt64(between), "\(lane): between \(one.number) and \(next.number)")
                    most = max(most, next.missed)
                }
                // A few had been on their way.
                #expect(most >= 80, "\(lane)")
            }
            witness.join()
            try await bus.stop()
        }

        private static func isStopped(_ pid: Int32) -> Bool {
            guard let status = try? File.read("/proc/\(pid)/stat", limit: 4096) else { return false }
            let text = String(decoding: status, as: UTF8.self)
            return text.split(separator: ")").last?.split(separator: " ").first == "T"
        }

        @Test func `shared frames are those that their headers name, in every format and from every worker`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let client = try await bus.connect()
            let frames = try await client.frames("cam0", "native", shared: true, silence: .seconds(30))
            #expect(frames.areShared)
            var streams: Set<String> = []
            for height: Int64 in [480, 720, 480] {
                try await client.withLock(["cam0"]) { lock in
                    let change: JSONValue = [
                        "device": "cam0",
                        "activeFormat": [
                            "pixelFormat": "YUYV", "width": height == 480 ? 640 : 1280, "height": .integer(height),
                        ],
                    ]
                    _ = try await client.configure([change], lock: lock.token)
                }
                streams.insert(try await Self.read(3, of: frames) { $0.header.height == Int(height) })
            }
            kill(try #require(try bus.workerPID("cam0")), SIGKILL)
            let old = streams
            streams.insert(try await Self.read(3, of: frames) { !old.contains($0.header.stream) })
            #expect(streams.count == 4)
            // One that is held for too long.
            let held = try await frames.next()
            while held.payload.isIntact { _ = try await frames.next() }
            #expect(frames.late >= 1 && frames.areShared)
            await client.close()
            try await bus.stop()
        }

        /// Reads so many frames as wished that were whole, and holds the numbers in their pictures against their
        /// headers.
        ///
        /// - Returns: the stream.
        private static func read(
            _ count: Int, of frames: BusClient.Frames, where isWished: (Frame) -> Bool
        ) async throws -> String {
            var found: [Frame] = []
            while found.count < count {
                guard let frame = try await Self.next(frames), isWished(frame) else { continue }
                let header = frame.header
                let format = try #require(PixelFormat(header.format))
                let size = Dimensions(width: header.width, height: header.height)
                let layout = FrameLayout(
                    pixelFormat: format, dimensions: size,
                    planes: header.planes.map { PlaneLayout(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) })
                let picture = frame.payload.withUnsafeBytes { PictureCounterReader.read($0, layout) }
                guard frame.payload.isIntact else { continue }
                #expect(frame.payload.isShared)
                #expect(picture.map { UInt64($0.counter) } == header.captureSequence)
                found.append(frame)
            }
            return found[0].header.stream
        }

        /// nil: the device is being started again.
        private static func next(_ frames: BusClient.Frames) async throws -> Frame? {
            do {
                return try await frames.next()
            } catch {
                guard let reason = error.reason, [.workerCrashed, .interrupted, .deviceInUse].contains(reason) else {
                    throw error
                }
                return nil
            }
        }

        @Test func `where a worker has no memory for a ring, shared frames come by message`() async throws {
            let bus = try await BusHarness(virtual: 1)
            // It streams already, so that it needs no memory but for the ring.
            let other = try FrameReader(bus, "cam0", "gray:64x36")
            _ = try other.next()
            let pid = try #require(try bus.workerPID("cam0"))
            let device = try RawClient(path: bus.directory.commandSocket).call("device.get", ["device": "cam0"])[
                "device"]
            let format = device?["activeFormat"]
            let pixels = try #require(format?["width"]?.integer) * #require(format?["height"]?.integer)
            let status = String(decoding: try File.read("/proc/\(pid)/status", limit: 1 << 16), as: UTF8.self)
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmSize:") })
            let kibibytes = try #require(line.split(separator: " ").dropFirst().first.flatMap { Int64($0) })
            // Some pictures of three bytes a pixel, and no ring of them: that of the camera's own is there already.
            let limit = try await bus.run(
                "prlimit", ["--pid", "\(pid)", "--as=\(kibibytes * 1024 + 18 * pixels)"])
            #expect(limit.status == 0, "\(limit.standardError)")
            let client = try await bus.connect()
            let frames = try await client.frames("cam0", "bgr", shared: true, silence: .seconds(30))
            for _ in 0..<5 {
                let frame = try await frames.next()
                #expect(!frame.payload.isShared && frame.header.planesFit(in: frame.payload.count))
                #expect(frame.header.width * frame.header.height == Int(pixels))
            }
            #expect(!frames.areShared)
            #expect(try bus.workerPID("cam0") == pid)
            await client.close()
            try await bus.stop()
        }

        @Test func `the command line reads shared memory, too`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let lines = try await bus.run(
                "camerabus", ["frames", "cam0", "gray:64x36", "--shared", "-n", "5", "--json"])
            #expect(lines.status == 0, "\(lines.standardError)")
            let frames = try lines.standardOutput.split(separator: "\n").map { try JSONValue(parsing: String($0)) }
            #expect(frames.count == 5 && frames.allSatisfy { $0["bytes"] == 2304 && $0["buffer"] != nil })
            let pattern = "\(bus.scratchPath)/f-%d.raw"
            let files = try await bus.run(
                "camerabus", ["frames", "cam0", "gray:64x36", "--shared", "-n", "2", "-o", pattern])
            #expect(files.status == 0, "\(files.standardError)")
            for number in 1...2 {
                #expect(try File.read("\(bus.scratchPath)/f-\(number).raw", limit: 9999).count == 2304)
            }
            let copied = try await bus.run(
                "sh", ["-c", "camerabus frames cam0 gray:64x36 --shared -n 3 -o - | wc -c"])
            #expect(copied.standardOutput.split(whereSeparator: \.isWhitespace).first == "6912")
            let error = try await bus.run("camerabus", ["frames", "cam0", "bgr:7680x4320", "--shared", "-n", "1"])
            #expect(error.status == 1 && error.standardError.contains("formatUnsupported"))
            try await bus.stop()
        }

        private static let attacker = """
            import array, fcntl, json, mmap, os, random, socket, sys
            path, seed = sys.argv[1], int(sys.argv[2])
            random.seed(seed)
            def connect():
                it = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                it.settimeout(10)
                it.connect(path)
                return it
            def refused(what, action):
                try:
                    action()
                except (OSError, ValueError, PermissionError):
                    return
                sys.exit(f"{what} was possible")
            # Through the descriptor: no byte is written, nothing is cut off, no seal is added.
            reader = connect()
            reader.send(b'{"rendition":"native"}')
            message, descriptors, _, _ = socket.recv_fds(reader, 65536, 4)
            memory = descriptors[0]
            size = os.fstat(memory).st_size
            again = None
            try:
                again = os.open(f"/proc/self/fd/{memory}", os.O_RDWR)
            except OSError:
                pass
            for descriptor in [memory] + ([again] if again is not None else []):
                refused("write", lambda: os.pwrite(descriptor, b"x" * 64, 448))
                refused("map", lambda: mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
                refused("shrink", lambda: os.ftruncate(descriptor, 0))
                refused("grow", lambda: os.ftruncate(descriptor, size * 2))
                refused("allocate", lambda: os.posix_fallocate(descriptor, 0, size * 2))
                refused("seal", lambda: fcntl.fcntl(descriptor, 1033, 0x0008))
            private = mmap.mmap(memory, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
            private[:4096] = bytes(4096)
            # At the socket: floods of connections, and of nonsense with descriptors and without.
            held = []
            for _ in range(300):
                try:
                    held.append(connect())
                except OSError:
                    break
            for it in held[::2]:
                for _ in range(20):
                    try:
                        it.settimeout(0)
                        data = random.randbytes(random.randrange(1, 3000))
                        if random.random() < 0.3:
                            data = json.dumps({"rendition": random.choice(["native", "x", 7, None, "gray:64x36", "a" * 900])}).encode()
                        fds = [0] if random.random() < 0.3 else []
                        socket.send_fds(it, [data], fds)
                    except OSError:
                        break
            for it in held[::3]:
                it.close()
            print("done", flush=True)
            sys.stdin.read()
            """

        @Test func `a faulty reader does not damage the frames of others`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let witness = try Witness(bus, "cam0")
            defer { witness.join() }
            try await eventually { try witness.numbers.count >= 3 }
            let pid = try bus.workerPID("cam0")
            let path = bus.directory.ringSocket("cam0")
            for seed in 1...2 {
                let attack = try await bus.run(
                    Programs.python, ["-c", Self.attacker, path, "\(seed)"], by: .after(seconds: 60))
                #expect(attack.status == 0 && attack.standardOutput == "done\n", "\(attack.standardError)")
            }
            let now = try witness.numbers.count
            try await eventually { try witness.numbers.count >= now + 20 }
            // There is room again.
            let rings = try RingConnection(bus.directory, "cam0", "native")
            let frame = try #require(try rings.next(timeout: .seconds(20)))
            let header = try #require(rings.header(of: frame))
            #expect(header.planesFit(in: frame.record.bytes))
            #expect(try bus.workerPID("cam0") == pid)
            witness.join()
            try await bus.stop()
        }
    }
}
