import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import Testing

/// A client's frames as a camera, sent by this process, which is the owner unless it says otherwise.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ClientCameraTests {
    private let folder: TemporaryDirectory
    private var path: String { "\(folder.path)/cam.push" }

    init() throws { folder = try TemporaryDirectory() }

    private func camera(
        _ pixelFormat: PixelFormat = .grey, _ width: Int = 16, _ height: Int = 8, pid: Int32 = getpid()
    ) throws -> ClientCamera {
        let owner = LockHolder(uid: getuid(), gid: getgid(), pid: pid, startTime: 1, name: "a test")
        let source = ClientSource(
            name: "A filter",
            description: FormatDescription(
                pixelFormat: pixelFormat, dimensions: Dimensions(width: width, height: height)), owner: owner)
        let camera = try ClientCamera(source, path: path, mode: 0o600, group: nil)
        #expect(try camera.open().formats.map(\.pixelFormat) == [pixelFormat])
        return camera
    }

    /// The other end: a plain socket.
    private final class Writer {
        /// -1: it is closed, and the number may be another's.
        private var descriptor: Int32

        init(_ path: String) throws {
            descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            try #require(result == 0)
            var limit = timeval(tv_sec: 10, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        }

        deinit { close() }

        func close() {
            if descriptor >= 0 { Glibc.close(descriptor) }
            descriptor = -1
        }

        static func head(_ bytes: Int, _ time: Int64 = 0, magic: String = "CBF1") -> [UInt8] {
            let size = withUnsafeBytes(of: UInt32(bytes).littleEndian) { Array($0) }
            return Array(magic.utf8) + size + withUnsafeBytes(of: time.littleEndian) { Array($0) }
        }

        func send(_ bytes: [UInt8]) throws {
            var sent = 0
            while sent < bytes.count {
                let count = bytes.withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
                }
                try #require(count > 0, "the connection has ended")
                sent += count
            }
        }

        /// Sends what fits at once, to whoever may have refused it by now.
        func offer(_ bytes: [UInt8]) {
            _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
        }

        /// Waits for a frame, or for the other end to say something or to end the connection: false then.
        func isServed(or stream: any FrameStream) throws -> Bool {
            var waits = [
                pollfd(fd: stream.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            ]
            try #require(poll(&waits, 2, Int32(clamping: Deadline.usual.millisecondsLeft)) > 0, "nothing has come")
            return waits[0].revents != 0
        }

        func frame(_ pixels: [UInt8], _ time: Int64 = 0) throws { try send(Self.head(pixels.count, time) + pixels) }

        /// What the other end says before it ends the connection; nil: it didn't end it.
        func lastWords() -> String? {
            var words: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                if count < 0, errno != ECONNRESET { return nil }
                if count <= 0 { return String(decoding: words, as: UTF8.self) }
                words += buffer[..<count]
            }
        }
    }

    private func picture(_ value: UInt8) -> [UInt8] { [UInt8](repeating: value, count: 128) }

    /// Reads frames until the one with these pixels, so that it is known that what was sent before has been taken.
    @discardableResult
    private func frame(of value: UInt8, _ stream: any FrameStream) throws -> FrameSlot {
        while true {
            let slot = try nextFrame(stream)
            if payload(slot).first == value { return slot }
            try stream.enqueue(slot)
        }
    }

    // MARK: Frames

    @Test("frames are what was sent, with their times") func frames() throws {
        let camera = try camera()
        let stream = try camera.startStreaming()
        let writer = try Writer(path)
        let time = MonotonicClock.now() - 5_000_000
        for number in 0..<20 as Range<UInt8> {
            try writer.frame(picture(number), time + Int64(number))
            let slot = try nextFrame(stream)
            #expect(Array(payload(slot)) == picture(number))
            #expect(slot.captureSequence == UInt64(number))
            #expect(slot.monotonicTime == time + Int64(number))
            #expect(stream.timestampSource == .startOfExposure)
            try stream.enqueue(slot)
        }
        try camera.stopStreaming()
    }

    @Test("compressed frames have the length that they have") func compressed() throws {
        let camera = try camera(.motionJPEG)
        let stream = try camera.startStreaming()
        let writer = try Writer(path)
        for length in [1, 300, 65536] {
            try writer.frame([UInt8](repeating: 7, count: length))
            let slot = try nextFrame(stream)
            #expect(slot.bytesUsed == [length])
            try stream.enqueue(slot)
        }
        try camera.stopStreaming()
    }

    @Test("a large frame comes whole, in however many pieces") func pieces() throws {
        let camera = try camera(.bgr24, 640, 480)
        let stream = try camera.startStreaming()
        let writer = try Writer(path)
        let pixels = (0..<640 * 480 * 3).map { UInt8(truncatingIfNeeded: $0 / 3) }
        let bytes = Writer.head(pixels.count) + pixels
        for start in stride(from: 0, to: bytes.count, by: 77_777) {
            try writer.send(Array(bytes[start..<min(start + 77_777, bytes.count)]))
        }
        #expect(Array(payload(try nextFrame(stream))) == pixels)
        try camera.stopStreaming()
    }

    @Test("times that can't be are replaced") func times() throws {
        let camera = try camera()
        let stream = try camera.startStreaming()
        let writer = try Writer(path)
        let start = MonotonicClock.now()
        var last: Int64 = 0
        let day: Int64 = 86_400_000_000_000
        for (number, time) in [0, start + day, start - day, Int64.min, Int64.max, -1].enumerated() {
            try writer.frame(picture(UInt8(number)), time)
            let slot = try nextFrame(stream)
            #expect(slot.monotonicTime >= start && slot.monotonicTime <= MonotonicClock.now())
            #expect(slot.monotonicTime > last)
            #expect(stream.timestampSource == .dequeue)
            last = slot.monotonicTime
            try stream.enqueue(slot)
        }
        // Not before the frame before.
        try writer.frame(picture(9), start)
        #expect(try nextFrame(stream).monotonicTime == last + 1)
        try camera.stopStreaming()
    }

    @Test("a source never waits for readers") func noReaders() throws {
        let camera = try camera(.grey, 640, 480)
        let writer = try Writer(path)
        let pixels = [UInt8](repeating: 1, count: 640 * 480)
        // Far more than the socket holds; nobody streams.
        for _ in 0..<20 { try writer.frame(pixels) }
        let stream = try camera.startStreaming()
        // Somebody streams, and takes nothing.
        for _ in 0..<20 { try writer.frame(pixels) }
        try writer.frame([UInt8](repeating: 2, count: 640 * 480))
        var last: UInt64 = 0
        for _ in stream.slots { last = try nextFrame(stream).captureSequence }
        for slot in stream.slots { try stream.enqueue(slot) }
        for _ in 0..<3 { try writer.frame([UInt8](repeating: 3, count: 640 * 480)) }
        let slot = try frame(of: 3, stream)
        // What there was no slot for has its numbers.
        #expect(slot.captureSequence > last + 10)
        try camera.stopStreaming()
    }

    @Test("each stream begins anew, and nothing of one comes into the next") func restart() throws {
        let camera = try camera()
        let writer = try Writer(path)
        for round in 0..<3 as Range<UInt8> {
            let stream = try camera.startStreaming()
            try writer.frame(picture(round))
            let slot = try frame(of: round, stream)
            // What was sent for the stream before may be whole only now.
            #expect(slot.captureSequence <= 1)
            // Half a frame of the old stream.
            try writer.send(Array((Writer.head(128) + picture(99))[..<60]))
            try camera.stopStreaming()
            try writer.send(Array((Writer.head(128) + picture(99))[60...]))
        }
    }

    // MARK: Hostile and unlucky writers

    @Test(
        "an invalid frame ends the connection with a reason, and the next connection is served",
        arguments: [
            Writer.head(127), Writer.head(129), Writer.head(0), Writer.head(Int(UInt32.max)),
            Writer.head(128, 0, magic: "GIF8"), [UInt8](repeating: 0, count: 16),
        ])
    func wrong(_ head: [UInt8]) throws {
        let camera = try camera()
        let stream = try camera.startStreaming()
        let writer = try Writer(path)
        try writer.frame(picture(1))
        try writer.send(head)
        let words = try #require(writer.lastWords())
        #expect(words.contains("\"reason\":\"invalidParams\"") && words.hasSuffix("}\n"))
        let other = try Writer(path)
        try other.frame(picture(2))
        try frame(of: 2, stream)
        try camera.stopStreaming()
    }

    @Test("a compressed frame is not longer than its room") func tooLong() throws {
        let camera = try camera(.motionJPEG)
        let writer = try Writer(path)
        try writer.send(Writer.head(65537))
        #expect(try #require(writer.lastWords()).contains("65536"))
        _ = camera
    }

    @Test("half a frame and no more ends the connection, and leaves no frame") func halfFrame() throws {
        let camera = try camera()
        let stream = try camera.startStreaming()
        let writer = try Writer(path)
        try writer.send(Array((Writer.head(128) + picture(1))[..<100]))
        #expect(try #require(writer.lastWords()).contains("two seconds"))
        let other = try Writer(path)
        try other.send([0x43])
        #expect(try #require(other.lastWords()).contains("two seconds"))
        let last = try Writer(path)
        try last.frame(picture(2))
        #expect(payload(try nextFrame(stream)).first == 2)
        try camera.stopStreaming()
    }

    @Test("a writer that dies in a frame takes no slot with it") func deadWriter() throws {
        let camera = try camera()
        let stream = try camera.startStreaming()
        var writer = try Writer(path)
        for _ in 0..<stream.slots.count * 2 {
            try writer.send(Array((Writer.head(128) + picture(1))[..<100]))
            writer.close()
            // It is over when another one is let in, who is the next to die; those that come before are refused.
            var slot: FrameSlot?
            while slot == nil {
                writer = try Writer(path)
                writer.offer(Writer.head(128) + picture(2))
                while slot == nil, try writer.isServed(or: stream) { slot = try stream.dequeue() }
            }
            let frame = try #require(slot)
            #expect(payload(frame).first == 2)
            try stream.enqueue(frame)
        }
        try camera.stopStreaming()
    }

    @Test("another process, and a second connection, are refused") func others() async throws {
        let camera = try camera()
        let stream = try camera.startStreaming()
        let writer = try Writer(path)
        try writer.frame(picture(1))
        try stream.enqueue(try frame(of: 1, stream))
        let second = try Writer(path)
        #expect(try #require(second.lastWords()).contains("deviceBusy"))
        let program = """
            import socket, sys
            s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(10)
            try:
                s.sendall(b"CBF1" + (128).to_bytes(4, "little") + bytes(8) + b"\\x63" * 128)
            except OSError: pass
            try:
                print(s.recv(4096).decode())
            except ConnectionResetError: print("unauthorized")
            """
        let running = try RunningProgram(
            Programs.python, ["-c", program, path], environment: CurrentProcess.environment(), scratch: folder)
        #expect(try await running.end().standardOutput.contains("unauthorized"))
        try writer.frame(picture(2))
        #expect(payload(try nextFrame(stream)).first == 2)
        try camera.stopStreaming()
    }

    @Test("the socket goes with the camera, and has the mode that was asked for") func file() throws {
        var camera: ClientCamera? = try camera()
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(camera?.identity.uniqueID == "client-A-filter")
        camera = nil
        #expect(stat(path, &status) != 0)
    }
}
