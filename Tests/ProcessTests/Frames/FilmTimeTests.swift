import BusProtocol
import CameraBusTesting
import CaptureCore
import Foundation
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Films that ffmpeg made, played by a replay camera and recorded: pictures are shown when they are in the film.
    @Suite struct FilmTimes {
        private let folder: TemporaryDirectory
        init() throws { folder = try TemporaryDirectory() }

        private func make(_ options: [String], _ bus: BusHarness) async throws {
            let made = try await bus.run("ffmpeg", ["-nostdin", "-v", "error", "-y"] + options)
            try #require(made.status == 0, "\(made)")
        }

        /// When each picture is shown, seconds.
        private func times(_ path: String, _ bus: BusHarness) async throws -> [Double] {
            let probe = try await bus.run(
                "ffprobe",
                ["-v", "error", "-select_streams", "v:0", "-show_entries", "frame=pts_time", "-of", "csv=p=0", path])
            try #require(probe.status == 0 && probe.standardError.isEmpty, "\(probe)")
            return probe.standardOutput.split(separator: "\n").compactMap {
                $0.split(separator: ",").first.flatMap { Double($0) }
            }
        }

        private func record(_ path: String, _ options: [String], _ bus: BusHarness) async throws -> JSONValue {
            let recorded = try await bus.run("camerabus", ["record", "film", "-o", path, "--json"] + options)
            try #require(recorded.status == 0, "\(recorded)")
            return try #require(
                recorded.standardOutput.split(separator: "\n").compactMap { try? JSONValue(parsing: Array($0.utf8)) }
                    .last)
        }

        @Test func `pictures that build on later ones are shown at the film's times`() async throws {
            let film = "\(folder.path)/film.mp4"
            let bus = try await BusHarness(virtual: 0, arguments: ["--replay", film])
            try await make(
                [
                    "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=30000/1001", "-frames:v", "240", "-c:v", "libx264",
                    "-pix_fmt", "yuv420p", film,
                ], bus)
            try await bus.wait(for: "state/device/film/") { $0?["connected"] == true }
            let chosen = try await bus.run("camerabus", ["format", "film", "320x240", "--pixel", "H264"])
            #expect(chosen.status == 0, "\(chosen)")
            let wanted = try await times(film, bus)
            for type in ["mkv", "mp4", "mov"] {
                let path = "\(folder.path)/movie.\(type)"
                _ = try await record(path, ["--codec", "passThrough", "--duration", "3"], bus)
                let found = try await times(path, bus)
                #expect((80...95).contains(found.count), "\(type)")
                // What is shown last may lack a picture that comes later.
                for (time, own) in zip(found.dropLast(4), wanted) { #expect(abs(time - own) < 0.0015, "\(type)") }
                let lines = try String(contentsOfFile: path + ".frames.jsonl", encoding: .utf8).split(separator: "\n")
                let entries = try lines.dropFirst().map { try JSONValue(parsing: Array($0.utf8)) }
                #expect(entries.count == found.count)
                let stamps = entries.compactMap { $0["timestamp"]?.integer }.sorted()
                for (time, stamp) in zip(found, stamps) {
                    #expect(abs(time - Double(stamp - stamps[0]) / 1e9) < 0.0015, "\(type)")
                }
                for entry in entries {
                    let (time, date) = (entry["timestamp"]?.integer, entry["realtime"]?.integer)
                    let now = MonotonicClock.realtime(of: try #require(time))
                    // The clock may be set by a little meanwhile.
                    #expect(abs(now - (try #require(date))) < 1_000_000_000)
                }
            }
            // Whoever reads frames has both times.
            let reader = try FrameReader(bus, "film", "native")
            var (decoded, shown) = ([Int64](), [Int64]())
            for _ in 0..<30 {
                let time = try reader.next().header["timestamp"]
                decoded.append(try #require(time?["monotonic"]?.integer))
                shown.append(time?["presentation"]?.integer ?? decoded[decoded.count - 1])
            }
            #expect(decoded == decoded.sorted() && shown != shown.sorted())
            #expect(zip(decoded, shown).allSatisfy { $0 <= $1 })
            try await bus.stop()
        }

        @Test func `a film's pause of four seconds is in its movie`() async throws {
            let film = "\(folder.path)/film.mkv"
            let bus = try await BusHarness(virtual: 0, arguments: ["--replay", film])
            try await make(
                [
                    "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-frames:v", "50", "-vf",
                    "setpts=if(gte(N\\,25)\\,N*40+3960\\,N*40)/1000/TB", "-vsync", "passthrough", "-c:v", "mjpeg", film,
                ], bus)
            try await bus.wait(for: "state/device/film/") { $0?["connected"] == true }
            for codec in ["h264", "passThrough"] {
                let path = "\(folder.path)/\(codec).mp4"
                _ = try await record(path, ["--codec", codec, "--duration", "6"], bus)
                let found = try await times(path, bus)
                let wanted = (0..<48).map { Double($0) * 0.04 + ($0 >= 25 ? 3.96 : 0) }
                try #require(found.count >= 48)
                for (time, own) in zip(found, wanted) { #expect(abs(time - own) < 0.001, "\(codec)") }
            }
            try await bus.stop()
        }

        @Test func `a movie's rate is its camera's, and no more`() async throws {
            let bus = try await BusHarness(virtual: 1, arguments: ["--virtual-profile", "iphone6"])
            for (rate, key) in [("24000/1001", 48), ("5", 10)] {
                let set = try await bus.run("camerabus", ["format", "cam0", "1280x720", "--fps", rate])
                #expect(set.status == 0, "\(set)")
                let parts = rate.split(separator: "/").compactMap { Double($0) }
                let number = parts[0] / (parts.count > 1 ? parts[1] : 1)
                let client = try RawClient(path: bus.directory.commandSocket)
                let settings = try client.call("movie.recommendedSettings", ["device": "cam0", "fileType": "mp4"])[
                    "video"]
                #expect(settings?["keyFrameInterval"] == .integer(Int64(key)))
                let path = "\(folder.path)/\(key).mp4"
                let started = try client.call(
                    "movie.start", ["device": "cam0", "path": .string(path), "detached": true])
                let id = try #require(started["movie"]?.string)
                let video = try client.call("movie.list")["movies"]?[0]?["video"]
                #expect(abs((video?["frameRate"]?.double ?? 0) - number) < 0.0001, "\(started)")
                #expect(video?["keyFrameInterval"] == .integer(Int64(key)))
                #expect(video?["bitRate"] == settings?["bitRate"])
                _ = try client.call("movie.stop", ["movie": .string(id)])
                let entry = try client.call("library.list", ["prefix": .string(id)])["entries"]?[0]
                #expect(abs((entry?["video"]?["frameRate"]?.double ?? 0) - number) < 0.0001)
                let more = try await bus.run(
                    "camerabus", ["record", "cam0", "-o", "\(path).more.mp4", "--fps", "30", "--duration", "1"])
                #expect(more.status != 0 && more.standardError.contains("frames per second"), "\(more)")
            }
            try await bus.stop()
        }
    }
}
