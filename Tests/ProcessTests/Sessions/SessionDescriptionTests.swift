import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// What sessions and devices state about the pictures that a camera delivers, beside what the pictures are.
    @Suite(.timeLimit(.minutes(5)), .enabled(if: access("/usr/bin/ffmpeg", X_OK) == 0, "ffmpeg is not there"))
    struct SessionDescriptions {
        private func make(_ path: String, _ size: String, _ options: [String], _ bus: BusHarness) async throws {
            let source = ["-f", "lavfi", "-i", "testsrc=size=\(size):rate=10:duration=1"]
            let made = try await bus.run(
                "ffmpeg", ["-nostdin", "-v", "error"] + source + ["-pix_fmt", "yuv420p"] + options + ["-y", path])
            try #require(made.status == 0, "\(made)")
        }

        /// What ffprobe says of a film, in the words of a description.
        private func probed(_ path: String, _ bus: BusHarness) async throws -> [String: JSONValue] {
            let entries =
                "stream=width,height,sample_aspect_ratio,color_range,color_space,color_transfer,color_primaries,"
                + "r_frame_rate"
            let probe = try await bus.run(
                "ffprobe", ["-v", "error", "-select_streams", "v", "-show_entries", entries, "-of", "json", path])
            let stream = try #require(try JSONValue(parsing: probe.standardOutput)["streams"]?[0], "\(probe)")
            let rate = try #require(stream["r_frame_rate"]?.string?.split(separator: "/"))
            return [
                "width": stream["width"] ?? .null, "height": stream["height"] ?? .null,
                "pixelAspectRatio": stream["sample_aspect_ratio"] ?? .null,
                "colorRange": stream["color_range"] == "pc" ? "full" : "video",
                "yCbCrMatrix": stream["color_space"] ?? .null, "transferFunction": stream["color_transfer"] ?? .null,
                "colorPrimaries": stream["color_primaries"] ?? .null,
                "frameDuration": .string("\(rate[1])/\(rate[0])"),
            ]
        }

        private func session(_ client: RawClient, _ device: String) throws -> String {
            let made = try client.call("session.create", ["inputs": [.string(device)]])
            let id = try #require(made["session"]?.string)
            #expect(made["state"]?["inputs"]?[0]?["formatDescription"] == .null, "it delivers nothing yet")
            try client.call("session.start", ["session": .string(id)], within: 30)
            return id
        }

        @Test func `a session states what its film is, and what the next one is that takes its place`() async throws {
            let folder = try TemporaryDirectory()
            let (film, next) = ("\(folder.path)/film.mp4", "\(folder.path)/next.mp4")
            let bus = try await BusHarness(virtual: 0, arguments: ["--replay", film])
            let x264 = ["-c:v", "libx264", "-qp", "20"]
            func colors(_ matrix: String, _ primaries: String, _ transfer: String, _ range: String) -> [String] {
                [
                    "-colorspace", matrix, "-color_primaries", primaries, "-color_trc", transfer, "-color_range", range,
                ]
            }
            try await make(film, "320x240", x264 + colors("bt709", "bt709", "bt709", "tv"), bus)
            let wide = ["-vf", "setsar=64/45", "-vtag", "avc1"]
            try await make(next, "320x240", x264 + wide + colors("bt2020nc", "bt2020", "smpte2084", "pc"), bus)
            let probes = [try await probed(film, bus), try await probed(next, bus)]
            try await bus.wait(for: "state/device/film/") { $0?["connected"] == true }
            let client = try RawClient(path: bus.directory.commandSocket)
            let id = try session(client, "film")
            for (index, probe) in probes.enumerated() {
                if index == 1 { rename(next, film) }
                let matrix = probe["yCbCrMatrix"]
                let state = try await bus.wait(for: "state/session/\(id)/") {
                    $0?["inputs"]?[0]?["formatDescription"]?["yCbCrMatrix"] == matrix
                }
                let stated = try #require(state?["inputs"]?[0]?["formatDescription"]?.object)
                for (name, value) in probe {
                    let isSquare = name == "pixelAspectRatio" && value == "1:1"
                    #expect(stated[name] == (isSquare ? nil : value), "\(index) \(name)")
                }
                let device = try client.call("device.get", ["device": "film"])["device"]
                #expect(device?["formatDescription"] == .object(stated))
                let header = try FrameReader(bus, "film", "native").next().header
                for (name, value) in stated {
                    #expect(header[name == "pixelFormat" ? "format" : name] == value, "\(index) \(name)")
                }
            }
            let shown = try await bus.run("camerabus", ["session", "show", id])
            let line = "film delivers NV12 320x240, 10 frames/s, primaries bt2020, transfer smpte2084, matrix bt2020nc"
            #expect(shown.standardOutput.contains(line), "\(shown)")
            #expect(shown.standardOutput.contains("range full") && shown.standardOutput.contains("pixels 64:45"))
            let stopped = try client.call("session.stop", ["session": .string(id)])
            #expect(stopped["state"]?["inputs"]?[0]?["formatDescription"] == .null)
            try await bus.stop()
        }

        @Test func `a session states the size that a film of two sizes has now`() async throws {
            let folder = try TemporaryDirectory()
            let film = "\(folder.path)/film.mjpeg"
            let bus = try await BusHarness(virtual: 0, arguments: ["--replay", film])
            var whole: [UInt8] = []
            for size in ["320x240", "640x480"] {
                try await make("\(film)-part.mjpeg", size, ["-q:v", "3"], bus)
                whole += try File.read("\(film)-part.mjpeg", limit: 1 << 24)
            }
            try File.replace(film, with: whole, mode: 0o600)
            try await bus.wait(for: "state/device/film/") { $0?["connected"] == true }
            let client = try RawClient(path: bus.directory.commandSocket)
            let id = try session(client, "film")
            for width: JSONValue in [640, 320, 640] {
                let state = try await bus.wait(for: "state/session/\(id)/") {
                    $0?["inputs"]?[0]?["formatDescription"]?["width"] == width
                }
                let stated = state?["inputs"]?[0]?["formatDescription"]
                #expect(stated?["height"] == (width == 640 ? 480 : 240) && stated?["colorRange"] == "full")
                #expect(state?["state"] == "running" && stated?["pixelFormat"] == "MJPG")
            }
            try await bus.stop()
        }
    }
}
