import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Films that ffmpeg made, played by a replay camera: every reader, photo and movie has what ffmpeg sees in them.
    @Suite(.timeLimit(.minutes(10)), .enabled(if: access("/usr/bin/ffmpeg", X_OK) == 0, "ffmpeg is not there"))
    struct Films {
        /// Of the film: four colours, two by two.
        private static let (width, height) = (320, 240)
        private static let colors = ["lime", "red", "blue", "0xC03C28"]

        /// The middles of the colours in a picture of that size.
        private static func middles(_ width: Int, _ height: Int) -> [(x: Int, y: Int)] {
            [(1, 1), (3, 1), (1, 3), (3, 3)].map { (width * $0.0 / 4, height * $0.1 / 4) }
        }

        private func ffmpeg(_ arguments: [String], _ bus: BusHarness) async throws {
            let result = try await bus.run("ffmpeg", ["-nostdin", "-v", "error"] + arguments)
            try #require(result.status == 0, "\(result)")
        }

        /// The first picture of a file as ffmpeg decodes it: upright, red, green and blue.
        private func pixels(_ path: String, _ bus: BusHarness) async throws -> [UInt8] {
            try await ffmpeg(
                [
                    "-i", path, "-frames:v", "1", "-vf",
                    "scale=out_range=full:flags=accurate_rnd+full_chroma_int+bicubic,format=rgb24", "-f", "rawvideo",
                    "-y", "\(path).rgb",
                ], bus)
            return try File.read("\(path).rgb", limit: 1 << 24)
        }

        private func make(_ path: String, _ matrix: String, _ range: String, _ bus: BusHarness) async throws {
            let sources = Self.colors.map { "color=\($0):s=\(Self.width / 2)x\(Self.height / 2):r=10:d=1,format=rgb24" }
            let inputs = sources.flatMap { ["-f", "lavfi", "-i", $0] }
            let name = matrix == "bt2020nc" ? "bt2020" : matrix == "smpte170m" ? "bt601" : matrix
            try await ffmpeg(
                inputs + [
                    "-filter_complex",
                    "xstack=inputs=4:layout=0_0|w0_0|0_h0|w0_h0,scale=out_color_matrix=\(name):out_range=\(range):"
                        + "flags=accurate_rnd+full_chroma_int,format=yuv420p",
                    "-colorspace", matrix, "-color_primaries", name == "bt601" ? "smpte170m" : name, "-color_trc",
                    "bt709", "-color_range", range, "-c:v", "libx264", "-qp", "0", "-y", path,
                ], bus)
        }

        /// How far the middles of the colours are from those of the film, at most.
        private func difference(
            _ pixels: [UInt8], _ size: (width: Int, height: Int), from film: [UInt8], channels: [Int] = [0, 1, 2]
        ) -> Int {
            guard pixels.count == size.width * size.height * channels.count else { return 256 }
            let places = zip(Self.middles(size.width, size.height), Self.middles(Self.width, Self.height))
            return places.flatMap { ours, theirs in
                channels.indices.map { index in
                    let own = Int(pixels[(ours.y * size.width + ours.x) * channels.count + index])
                    return abs(own - Int(film[(theirs.y * Self.width + theirs.x) * 3 + channels[index]]))
                }
            }.max() ?? 256
        }

        @Test(arguments: ["smpte170m", "bt709", "bt2020nc"], ["tv", "pc"])
        func `a film's colours reach every reader, photo and movie`(_ matrix: String, _ range: String) async throws {
            let folder = try TemporaryDirectory()
            let film = "\(folder.path)/film.mp4"
            let bus = try await BusHarness(virtual: 0, arguments: ["--replay", film])
            try await make(film, matrix, range, bus)
            try await bus.wait(for: "state/device/film/") { $0?["connected"] == true }
            let wanted = try await pixels(film, bus)

            let native = try FrameReader(bus, "film", "native").next().header
            #expect(native["yCbCrMatrix"] == .string(matrix))
            #expect(native["colorRange"] == .string(range == "pc" ? "full" : "video"))
            #expect(native["transferFunction"] == "bt709" && native["frameDuration"] == "1/10")

            for (rendition, channels) in [("rgb", [0, 1, 2]), ("bgr", [2, 1, 0])] {
                let frame = try FrameReader(bus, "film", rendition).next()
                #expect(frame.header["yCbCrMatrix"] == "gbr" && frame.header["colorRange"] == "full")
                let pixels = frame.payload.withUnsafeBytes { Array($0) }
                let most = difference(pixels, (Self.width, Self.height), from: wanted, channels: channels)
                #expect(most <= 2, "\(rendition)")
            }
            for (rendition, width) in [("jpeg", Self.width), ("jpeg:160x0", 160)] {
                let frame = try FrameReader(bus, "film", rendition).next()
                #expect(frame.header["yCbCrMatrix"] == "smpte170m" && frame.header["colorRange"] == "full")
                try File.replace(
                    "\(folder.path)/frame.jpg", with: frame.payload.withUnsafeBytes { Array($0) }, mode: 0o600)
                let seen = try await pixels("\(folder.path)/frame.jpg", bus)
                #expect(difference(seen, (width, width * 3 / 4), from: wanted) <= 6, "\(rendition)")
            }
            let photo = "\(folder.path)/photo.jpg"
            let taken = try await bus.run("camerabus", ["photo", "film", "-o", photo])
            #expect(taken.status == 0, "\(taken)")
            #expect(difference(try await pixels(photo, bus), (Self.width, Self.height), from: wanted) <= 6)

            for file in ["movie.mp4", "movie.mov", "movie.mkv"] {
                let path = "\(folder.path)/\(file)"
                let recorded = try await bus.run(
                    "camerabus", ["record", "film", "-o", path, "--codec", "h264", "--duration", "1"])
                #expect(recorded.status == 0, "\(recorded)")
                let probe = try await bus.run(
                    "ffprobe",
                    [
                        "-v", "error", "-select_streams", "v", "-show_entries", "stream=color_space,color_range",
                        "-of", "default=nw=1:nk=1", path,
                    ])
                #expect(probe.standardOutput == "tv\n\(matrix)\n", "\(file): \(probe)")
                let seen = try await pixels(path, bus)
                #expect(difference(seen, (Self.width, Self.height), from: wanted) <= 6, "\(file)")
            }
            try await bus.stop()
        }
    }
}
