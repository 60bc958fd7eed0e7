import BusProtocol
import CameraBusTesting
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// H.264 as ffmpeg reads it, and turned pictures, through the whole system.
    @Suite(.timeLimit(.minutes(5))) struct Pictures {
        private static let size = Dimensions(width: 640, height: 360)

        private func choose(_ pixelFormat: String, _ bus: BusHarness) async throws {
            let result = try await bus.run(
                "camerabus", ["format", "cam0", "\(Self.size)", "--pixel", pixelFormat, "--fps", "30"])
            #expect(result.status == 0, "\(result)")
        }

        /// The counters in a stream of grey pictures.
        private func counters(_ path: String) throws -> [UInt32] {
            let bytes = try File.read(path, limit: 1 << 28)
            let layout = try #require(FrameLayout.packed(.grey, Self.size))
            #expect(bytes.count % layout.totalBytes == 0)
            return try stride(from: 0, to: bytes.count, by: layout.totalBytes).map { start in
                let picture = Array(bytes[start..<start + layout.totalBytes])
                return try #require(PictureCounterReader.read(picture, layout)).counter
            }
        }

        @Test(.enabled(if: access("/usr/bin/ffmpeg", X_OK) == 0, "ffmpeg is not there"))
        func `an H.264 recording is a stream that ffmpeg decodes, also for a late subscriber`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            try await choose("H264", bus)
            let early = try FrameReader(bus, "cam0", "native")
            // In the middle of a second: the key frame was before.
            while try early.next().sequence < 10 {}
            for name in ["first", "second"] {
                let script = "camerabus frames cam0 native -n 75 -o - > \(bus.scratchPath)/\(name).h264"
                let recorded = try await bus.run("sh", ["-c", script])
                #expect(recorded.status == 0, "\(recorded)")
            }
            for name in ["first", "second"] {
                let file = "\(bus.scratchPath)/\(name).h264"
                let probe = try await bus.run(
                    "ffprobe",
                    ["-v", "error", "-show_entries", "stream=codec_name,width,height,pix_fmt", "-of", "csv=p=0", file])
                #expect(probe.standardOutput == "h264,640,360,yuv420p\n", "\(probe)")
                let decode = try await bus.run(
                    "ffmpeg",
                    [
                        "-nostdin", "-v", "warning", "-xerror", "-err_detect", "explode", "-f", "h264", "-i", file,
                        "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "gray", "\(file).gray",
                    ])
                #expect(decode.status == 0 && decode.standardError == "", "\(decode)")
                let counters = try counters("\(file).gray")
                #expect(counters.count == 75)
                #expect(zip(counters, counters.dropFirst()).allSatisfy { $0 < $1 })
            }
            try await bus.stop()
        }

        @Test func `pictures are turned and mirrored as asked for, from raw frames and from JPEG`() async throws {
            let bus = try await BusHarness(virtual: 1)
            for pixelFormat in ["YUYV", "MJPG"] {
                try await choose(pixelFormat, bus)
                for (quarters, mirror) in (0..<4).flatMap({ [($0, false), ($0, true)] }) {
                    let rendition = "gray;rotate=\(quarters * 90)\(mirror ? ";mirror" : "")"
                    let frame = try FrameReader(bus, "cam0", rendition).next()
                    #expect(frame.header["mirrored"] == .bool(mirror))
                    #expect(frame.header["orientation"] == 0)
                    let width = try #require(frame.header["width"]?.integer)
                    #expect(width == Int64(quarters % 2 == 0 ? Self.size.width : Self.size.height))
                    // Back again: only the right way round can it be read.
                    var picture = frame.payload.withUnsafeBytes { Array($0) }
                    var size =
                        quarters % 2 == 0 ? Self.size : Dimensions(width: Self.size.height, height: Self.size.width)
                    if mirror {
                        picture = stride(from: 0, to: picture.count, by: size.width).flatMap {
                            picture[$0..<$0 + size.width].reversed()
                        }
                    }
                    for _ in 0..<(4 - quarters) % 4 {
                        let source = picture
                        let (columns, lines) = (size.width, size.height)
                        picture = (0..<columns).flatMap { column in
                            (0..<lines).map { source[(lines - 1 - $0) * columns + column] }
                        }
                        size = Dimensions(width: lines, height: columns)
                    }
                    #expect(size == Self.size)
                    let layout = try #require(FrameLayout.packed(.grey, size))
                    let counter = try #require(
                        PictureCounterReader.read(picture, layout), "\(pixelFormat) \(rendition)")
                    #expect(UInt64(counter.counter) == frame.captureSequence)
                }
            }
            try await bus.stop()
        }

        @Test func `a JPEG camera's pictures are turned for who opens them with Pillow`() async throws {
            let bus = try await BusHarness(virtual: 1)
            try await choose("MJPG", bus)
            let script = """
                import sys
                from PIL import Image
                for path in sys.argv[1:]:
                    with Image.open(path) as picture:
                        picture.load()
                        print(picture.format, *picture.size)
                """
            var files: [String] = []
            for (number, rendition) in ["jpeg;rotate=90", "jpeg:180x0;rotate=270;mirror", "jpeg;mirror;q=50"]
                .enumerated()
            {
                files.append("\(bus.scratchPath)/turned-\(number).jpg")
                let result = try await bus.run(
                    "camerabus", ["frames", "cam0", rendition, "-n", "1", "-o", files[number]])
                #expect(result.status == 0, "\(result)")
            }
            let pillow = try await bus.run(Programs.python, ["-c", script] + files)
            #expect(pillow.standardOutput == "JPEG 360 640\nJPEG 180 320\nJPEG 640 360\n", "\(pillow)")
            try await bus.stop()
        }
    }
}
