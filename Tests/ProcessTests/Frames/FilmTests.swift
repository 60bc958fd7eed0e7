import BusClient
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
        static let (width, height) = (320, 240)
        private static let colors = ["lime", "red", "blue", "0xC03C28"]

        /// The middles of the colours in a picture of that size.
        private static func middles(_ width: Int, _ height: Int) -> [(x: Int, y: Int)] {
            [(1, 1), (3, 1), (1, 3), (3, 3)].map { (width * $0.0 / 4, height * $0.1 / 4) }
        }

        func ffmpeg(_ arguments: [String], _ bus: BusHarness) async throws {
            let result = try await bus.run("ffmpeg", ["-nostdin", "-v", "error"] + arguments)
            try #require(result.status == 0, "\(result)")
        }

        /// The first picture of a file as ffmpeg decodes it: upright, red, green and blue.
        func pixels(_ path: String, _ bus: BusHarness) async throws -> [UInt8] {
            try await ffmpeg(
                [
                    "-i", path, "-frames:v", "1", "-vf",
                    "scale=out_range=full:flags=accurate_rnd+full_chroma_int+bicubic,format=rgb24", "-f", "rawvideo",
                    "-y", "\(path).rgb",
                ], bus)
            return try File.read("\(path).rgb", limit: 1 << 24)
        }

        func make(
            _ path: String, _ matrix: String, _ range: String, shape: String = "1/1", _ bus: BusHarness
        ) async throws {
            let sources = Self.colors.map { "color=\($0):s=\(Self.width / 2)x\(Self.height / 2):r=10:d=1,format=rgb24" }
            let inputs = sources.flatMap { ["-f", "lavfi", "-i", $0] }
            let name = matrix == "bt2020nc" ? "bt2020" : matrix == "smpte170m" ? "bt601" : matrix
            try await ffmpeg(
                inputs + [
                    "-filter_complex",
                    "xstack=inputs=4:layout=0_0|w0_0|0_h0|w0_h0,scale=out_color_matrix=\(name):out_range=\(range):"
                        + "flags=accurate_rnd+full_chroma_int,format=yuv420p,setsar=\(shape)",
                    "-colorspace", matrix, "-color_primaries", name == "bt601" ? "smpte170m" : name, "-color_trc",
                    "bt709", "-color_range", range, "-c:v", "libx264", "-qp", "0", "-y", path,
                ], bus)
        }

        /// How far the middles of the colours are from those of the film, at most.
        func difference(
            _ pixels: [UInt8], _ size: (width: Int, height: Int), from film: [UInt8], channels: [Int] = [0, 1, 2],
            film isQuarter: Bool = false
        ) -> Int {
            guard pixels.count == size.width * size.height * channels.count else { return 256 }
            let (width, height) = isQuarter ? (Self.height, Self.width) : (Self.width, Self.height)
            let places = zip(Self.middles(size.width, size.height), Self.middles(width, height))
            return places.flatMap { ours, theirs in
                channels.indices.map { index in
                    let own = Int(pixels[(ours.y * size.width + ours.x) * channels.count + index])
                    return abs(own - Int(film[(theirs.y * width + theirs.x) * 3 + channels[index]]))
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

            // One of each kind is enough.
            let isFirst = matrix == "bt709" && range == "tv"
            for file in isFirst ? ["movie.mp4", "movie.mov", "movie.mkv"] : ["movie.mp4"] {
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

        @Test func `two sizes of Motion JPEG in one film are two streams with true headers`() async throws {
            let folder = try TemporaryDirectory()
            let film = "\(folder.path)/film.mjpeg"
            let bus = try await BusHarness(virtual: 0, arguments: ["--replay", film])
            var whole: [UInt8] = []
            for size in ["320x240", "640x480"] {
                let part = "\(folder.path)/part.mjpeg"
                try await ffmpeg(
                    ["-f", "lavfi", "-i", "testsrc=size=\(size):rate=25", "-frames:v", "50", "-q:v", "3", "-y", part],
                    bus)
                whole += try File.read(part, limit: 1 << 24)
            }
            try File.replace("\(folder.path)/whole", with: whole, mode: 0o600)
            rename("\(folder.path)/whole", film)
            try await bus.wait(for: "state/device/film/") { $0?["connected"] == true }
            for rendition in ["native", "rgb"] {
                let reader = try FrameReader(bus, "film", rendition)
                var streams: [String: (size: String, frames: Int)] = [:]
                for _ in 0..<400 where streams.values.filter({ $0.frames > 10 }).count < 3 {
                    let frame = try reader.next()
                    let size = "\(frame.header["width"]?.integer ?? 0)x\(frame.header["height"]?.integer ?? 0)"
                    let stream = try #require(frame.header["stream"]?.string)
                    #expect(streams[stream]?.size ?? size == size, "one stream, one size")
                    streams[stream] = (size, (streams[stream]?.frames ?? 0) + 1)
                    guard rendition == "native", streams[stream]?.frames ?? 0 <= 2 else { continue }
                    let file = "\(folder.path)/frame.jpg"
                    try File.replace(file, with: frame.payload.withUnsafeBytes { Array($0) }, mode: 0o600)
                    let probe = try await bus.run(
                        "ffprobe",
                        ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0:s=x", file])
                    #expect(probe.standardOutput == "\(size)\n")
                }
                #expect(Set(streams.values.map(\.size)) == ["320x240", "640x480"] && streams.count >= 3, "\(streams)")
            }
            try await bus.stop()
        }

        @Test(arguments: ["mp4", "mov", "mkv"])
        func `other colours in the middle of a film are another stream with true headers`(
            _ container: String
        ) async throws {
            let folder = try TemporaryDirectory()
            let film = "\(folder.path)/film.\(container)"
            let bus = try await BusHarness(virtual: 0, arguments: ["--replay", film])
            var whole: [UInt8] = []
            var wanted: [String: (native: [UInt8], rgb: [UInt8])] = [:]
            for (matrix, range) in [("bt709", "tv"), ("smpte170m", "pc")] {
                let part = "\(folder.path)/\(matrix).h264"
                try await make(part, matrix, range, bus)
                whole += try File.read(part, limit: 1 << 24)
                try await ffmpeg(["-i", part, "-frames:v", "1", "-f", "rawvideo", "-y", "\(part).raw"], bus)
                wanted["\(matrix) \(range == "pc" ? "full" : "video")"] = (
                    try File.read("\(part).raw", limit: 1 << 24), try await pixels(part, bus)
                )
            }
            try File.replace("\(folder.path)/whole.h264", with: whole, mode: 0o600)
            let made = "\(folder.path)/made.\(container)"
            try await ffmpeg(["-framerate", "10", "-i", "\(folder.path)/whole.h264", "-c", "copy", made], bus)
            rename(made, film)
            try await bus.wait(for: "state/device/film/") { $0?["connected"] == true }
            let observer = try await bus.connect()
            let messages = try await observer.watch(["event/device/film/"])
            for rendition in ["native", "rgb", "stored"] {
                if rendition == "stored" {
                    let chosen = try await bus.run("camerabus", ["format", "film", "320x240", "--pixel", "H264"])
                    #expect(chosen.status == 0, "\(chosen)")
                }
                let reader = try FrameReader(bus, "film", rendition == "stored" ? "native" : rendition)
                var streams: [String: (kind: String, frames: Int)] = [:]
                for _ in 0..<200 where streams.values.filter({ $0.frames > 3 }).count < 3 {
                    let frame = try reader.next()
                    let stream = try #require(frame.header["stream"]?.string)
                    let words = [frame.header["yCbCrMatrix"], frame.header["colorRange"]]
                    let kind = words.map { $0?.string ?? "" }.joined(separator: " ")
                    #expect(streams[stream]?.kind ?? kind == kind, "one stream, one description")
                    streams[stream] = (kind, (streams[stream]?.frames ?? 0) + 1)
                    let payload = frame.payload.withUnsafeBytes { Array($0) }
                    if rendition == "native" { #expect(payload == wanted[kind]?.native, "\(kind)") }
                    for theirs in wanted.values where rendition == "rgb" {
                        #expect(difference(payload, (Self.width, Self.height), from: theirs.rgb) <= 2)
                    }
                }
                let kinds = Set(streams.values.map(\.kind))
                #expect(kinds == (rendition == "rgb" ? ["gbr full"] : Set(wanted.keys)), "\(streams)")
                #expect(streams.count >= 3, "\(streams)")
            }
            let event = try await Deadline.usual.limit("sourceChanged") {
                for try await message in messages where message.json["event"] == "sourceChanged" {
                    return message.json
                }
                throw TestingError("the events have ended")
            }
            #expect(event["resolution"] == false, "\(event)")
            await observer.close()
            try await bus.stop()
        }

        /// The matrix of a track (`tkhd`), and what a header says of such pictures.
        static let turns: [(name: String, matrix: [Int32], orientation: Int, mirrored: Bool)] = [
            ("none", [1, 0, 0, 1], 0, false), ("quarter", [0, 1, -1, 0], 90, false),
            ("half", [-1, 0, 0, -1], 180, false),
            ("three quarters", [0, -1, 1, 0], 270, false), ("mirrored", [-1, 0, 0, 1], 0, true),
            ("mirrored quarter", [0, 1, 1, 0], 90, true),
        ]

        private func turn(_ path: String, _ matrix: [Int32]) throws {
            var bytes = try File.read(path, limit: 1 << 24)
            let name = Array("tkhd".utf8)
            let box = try #require(bytes.indices.dropLast(80).first { bytes[$0...].starts(with: name) })
            let (a, b, c, d) = (matrix[0] << 16, matrix[1] << 16, matrix[2] << 16, matrix[3] << 16)
            for (index, value) in [a, b, 0, c, d, 0, 0, 0, 1 << 30].enumerated() {
                for byte in 0..<4 {
                    bytes[box + 44 + 4 * index + byte] = UInt8(truncatingIfNeeded: value >> (24 - 8 * Int32(byte)))
                }
            }
            try File.replace(path, with: bytes, mode: 0o600)
        }

        /// What is played, and a file of it that ffmpeg shows.
        func makeTurned(
            _ film: String, _ index: Int, _ codec: String, isFolder: Bool, _ bus: BusHarness
        ) async throws -> String {
            let (turn, plain, made) = (Self.turns[index], "\(film)-plain.mp4", "\(film)-made")
            try await make(plain, "smpte170m", codec == "mjpeg" ? "pc" : "tv", bus)
            let encoding =
                ["-i", plain, "-c:v", codec, "-q:v", "2", "-pix_fmt"] + [codec == "mjpeg" ? "yuvj420p" : "yuv420p"]
            guard isFolder else {
                try await ffmpeg(encoding + ["\(made).mov"], bus)
                try self.turn("\(made).mov", turn.matrix)
                rename("\(made).mov", film)
                return film
            }
            mkdir(made, 0o700)
            try await ffmpeg(encoding + ["\(made)/%d.jpg"], bus)
            let number = turn.mirrored ? [0: 2, 90: 5, 180: 4, 270: 7] : [0: 1, 90: 6, 180: 3, 270: 8]
            let told = try await bus.run(
                "exiftool",
                ["-q", "-overwrite_original", "-n", "-Orientation=\(number[turn.orientation] ?? 1)", "-r", made])
            try #require(told.status == 0, "\(told)")
            rename(made, film)
            return "\(film)/1.jpg"
        }

        @Test(
            arguments: turns.indices.map { ($0, "mjpeg", false) } + [(1, "libx264", false), (5, "libx264", false)]
                + turns.indices.dropFirst().map { ($0, "mjpeg", true) })
        func `a film's turn reaches every reader, photo and movie`(
            _ index: Int, _ codec: String, _ isFolder: Bool
        ) async throws {
            let turn = Self.turns[index]
            let folder = try TemporaryDirectory()
            let film = "\(folder.path)/\(isFolder ? "film" : "film.mov")"
            let bus = try await BusHarness(virtual: 0, arguments: ["--replay", film])
            let shown = try await makeTurned(film, index, codec, isFolder: isFolder, bus)
            try await bus.wait(for: "state/device/film/") { $0?["connected"] == true }
            let wanted = try await pixels(shown, bus)
            let isQuarter = turn.orientation % 180 != 0
            let (width, height) = isQuarter ? (Self.height, Self.width) : (Self.width, Self.height)
            func isUpright(_ path: String, _ what: String, width: Int = width, height: Int = height) async throws {
                let pixels = try await pixels(path, bus)
                #expect(pixels.count == width * height * 3, "\(what)")
                let most = difference(pixels, (width, height), from: wanted, film: isQuarter)
                #expect(most <= 8, "\(what): \(turn.name)")
            }

            let native = try FrameReader(bus, "film", "native").next().header
            #expect(native["orientation"] == JSONValue(turn.orientation) && native["mirrored"] == .bool(turn.mirrored))
            #expect(native["width"] == JSONValue(Self.width) && native["height"] == JSONValue(Self.height))
            let rgb = try FrameReader(bus, "film", "rgb").next()
            #expect(rgb.header["orientation"] == 0 && rgb.header["mirrored"] == false)
            #expect(rgb.header["width"] == JSONValue(width) && rgb.header["height"] == JSONValue(height))
            let payload = rgb.payload.withUnsafeBytes { Array($0) }
            #expect(difference(payload, (width, height), from: wanted, film: isQuarter) <= 8)

            let sized = try FrameReader(bus, "film", "gray:\(width)x\(height)").next()
            #expect(sized.header["width"] == JSONValue(width) && sized.header["height"] == JSONValue(height))
            if isQuarter {
                let refusal = try FrameReader(bus, "film", "gray:\(height)x\(width)").error()
                #expect(refusal.reason == .formatUnsupported)
            }

            for rendition in ["jpeg", "jpeg:\(width / 2)x0"] {
                let frame = try FrameReader(bus, "film", rendition).next()
                let isWhole = rendition == "jpeg"
                if isWhole, codec == "mjpeg" {
                    #expect(frame.header["orientation"] == JSONValue(turn.orientation))
                } else {
                    #expect(frame.header["orientation"] == 0)
                }
                let file = "\(folder.path)/frame.jpg"
                try File.replace(file, with: frame.payload.withUnsafeBytes { Array($0) }, mode: 0o600)
                try await isUpright(
                    file, rendition, width: isWhole ? width : width / 2, height: isWhole ? height : height / 2)
            }
            let photo = "\(folder.path)/photo.jpg"
            let taken = try await bus.run("camerabus", ["photo", "film", "-o", photo])
            #expect(taken.status == 0, "\(taken)")
            try await isUpright(photo, "photo")

            // Of each kind of turn what differs, and of one all.
            var movies = [("encoded.mkv", [String]())]
            if codec == "mjpeg" { movies = [("stored.mp4", ["--codec", "passThrough"])] }
            if codec == "mjpeg", index == 5 {
                movies += [("encoded.mp4", []), ("stored.mov", ["--codec", "passThrough"])]
            }
            for (file, options) in movies {
                let path = "\(folder.path)/\(file)"
                let recorded = try await bus.run(
                    "camerabus", ["record", "film", "-o", path, "--duration", "1"] + options)
                #expect(recorded.status == 0, "\(recorded)")
                try await isUpright(path, file)
            }
            guard codec == "mjpeg", index < 2 else { return try await bus.stop() }
            let stored = "\(folder.path)/stored.mkv"
            let refused = try await bus.run(
                "camerabus", ["record", "film", "-o", stored, "--codec", "passThrough", "--duration", "1"])
            if turn.name != "none" {
                #expect(refused.status != 0 && refused.standardError.contains("mp4"), "\(refused)")
            } else {
                try await isUpright(stored, "stored.mkv")
            }
            try await bus.stop()
        }

        @Test func `a passThrough movie in portrait has a matrix, and the camera's pictures byte for byte`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let chosen = try await bus.run("camerabus", ["format", "cam0", "640x480", "--pixel", "MJPG"])
            #expect(chosen.status == 0, "\(chosen)")
            let reader = try FrameReader(bus, "cam0", "native")
            _ = try reader.next()
            let path = "\(bus.scratchPath)/portrait.mp4"
            let recorded = try await bus.run(
                "camerabus",
                [
                    "record", "cam0", "-o", path, "--codec", "passThrough", "--orientation", "portrait", "--mirrored",
                    "--duration", "1",
                ])
            #expect(recorded.status == 0, "\(recorded)")
            let probe = try await bus.run(
                "ffprobe",
                [
                    "-v", "error", "-select_streams", "v", "-show_entries",
                    "stream=width,height:stream_side_data=rotation",
                    "-of", "default=nw=1", path,
                ])
            #expect(
                probe.standardOutput.contains("width=640") && probe.standardOutput.contains("rotation="), "\(probe)")
            // Upright for whoever shows it.
            #expect(try await pixels(path, bus).count == 480 * 640 * 3)
            let frames = try await bus.run(
                "ffmpeg", ["-nostdin", "-v", "error", "-i", path, "-c", "copy", "-f", "image2", "\(path)-%d.jpg"])
            #expect(frames.status == 0, "\(frames)")
            let stored = try (1...10).map { try File.read("\(path)-\($0).jpg", limit: 1 << 24) }
            var left = Set(stored)
            for _ in 0..<300 where !left.isEmpty {
                left.remove(try reader.next().payload.withUnsafeBytes { Array($0) })
            }
            #expect(left.isEmpty, "\(left.count) of 10 pictures are not the camera's")
            try await bus.stop()
        }
    }
}
