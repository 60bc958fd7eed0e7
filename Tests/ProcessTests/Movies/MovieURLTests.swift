import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Movies that a media server gets in the place of a file.
    @Suite(.timeLimit(.minutes(3))) struct MovieURLs {
        private static func bus(_ destination: String) async throws -> BusHarness {
            let bus = try await BusHarness(
                virtual: 1, microphones: 1, configuration: "[library]\ndestinations = [\"\(destination)\"]\n")
            let set = try await bus.run("camerabus", ["format", "cam0", "640x480", "--pixel", "MJPG"])
            try #require(set.status == 0, "\(set)")
            return bus
        }

        private static func serve(
            _ bus: BusHarness, _ arguments: [String], _ port: Int, to name: String
        ) async throws -> RunningProgram {
            let server = try bus.start(
                "ffmpeg", ["-v", "warning", "-nostdin"] + arguments + ["-c", "copy", "\(bus.scratchPath)/\(name)"])
            try await eventually(by: .after(seconds: 20)) { LocalPort.isListening(port) }
            return server
        }

        /// The server's file shows the camera's pictures in their order.
        private static func check(_ path: String, codecs: [String]) async throws {
            let movie = try RecordedMovie(path)
            #expect(try await movie.codecs() == codecs)
            let counters = try await movie.pictures().map(\.counter?.counter)
            #expect(counters.count >= 10 && counters.allSatisfy { $0 != nil })
            #expect(zip(counters, counters.dropFirst()).allSatisfy { ($0 ?? 0) < ($1 ?? 0) })
        }

        @Test func `a server that the configuration names gets the movie, and again when it comes back`() async throws {
            let port = try LocalPort.free()
            let (place, server) = ("rtsp://127.0.0.1:\(port)/live", ["-rtsp_flags", "listen", "-i"])
            let bus = try await Self.bus(place)
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Movies.Ears(bus))
            func refusal(_ url: String) throws -> BusError? {
                try client.refusal("movie.start", ["device": "cam0", "url": .string(url)])
            }
            for url in [
                "\(place)ly", "rtsp://127.0.0.1:\(port)", "rtsp://127.0.0.1/live", "srt://127.0.0.1:\(port)/live",
            ] {
                let error = try refusal(url)
                #expect(error?.reason == .pathNotAllowed && error?.data["roots"] == [.string(place)], "\(url)")
            }
            // Nobody is there.
            let absent = try refusal("\(place)/belt")
            #expect(absent?.reason == .invalidParams && absent?.data["path"] == "url", "\(absent as Any)")

            let url = "rtsp://belt:secret@127.0.0.1:\(port)/live/belt"
            let first = try await Self.serve(bus, server + ["\(place)/belt"], port, to: "first.mkv")
            let started = try client.call("movie.start", ["device": "cam0", "url": .string(url)])
            let id = try #require(started["movie"]?.string)
            #expect(started["url"]?.string == "\(place)/belt" && started["path"] == .null, "\(started)")
            #expect(started["video"]?["codec"] == "h264")
            try await bus.wait(for: "state/movie/\(id)/") {
                $0?["connected"] == true && ($0?["frames"]?.integer ?? 0) > 10
            }
            let who = try client.call("device.who", ["device": "cam0"])["subscribers"]?.array ?? []
            let recorder = try #require(who.first { $0["name"] == "camerabus-recorder" }?["pid"]?.integer)
            let arguments = try File.read("/proc/\(recorder)/cmdline", limit: 65536)
            #expect(!String(decoding: arguments, as: UTF8.self).contains("secret"))

            first.process.send(SIGKILL)
            _ = try await first.end()
            let lost = try ears.next("didDisconnect", of: id)
            #expect(lost["url"]?.string == "\(place)/belt" && lost["message"]?.string?.isEmpty == false)
            let second = try await Self.serve(bus, server + ["\(place)/belt"], port, to: "second.mkv")
            try ears.next("didReconnect", of: id)
            let before = try client.call("movie.status", ["movie": .string(id)])["movie"]?["frames"]?.integer ?? 0
            try await bus.wait(for: "state/movie/\(id)/") {
                $0?["reconnects"] == 1 && ($0?["frames"]?.integer ?? 0) > before + 30
            }
            let end = try client.call("movie.stop", ["movie": .string(id)])
            #expect(end["reason"] == "stopped" && end["success"] == true && end["kept"] == false, "\(end)")
            #expect(end["path"] == .null && end["url"]?.string == "\(place)/belt" && end["size"]?.integer ?? 0 > 0)
            let result = try await second.end(by: .after(seconds: 20))
            #expect(result.status == 0, "\(result)")
            try await Self.check("\(bus.scratchPath)/second.mkv", codecs: ["h264"])
            #expect(!bus.log.contains("secret") && !"\(started) \(lost) \(end)".contains("secret"))
            try await bus.stop()
        }

        @Test func `the command sends a movie with sound`() async throws {
            let port = try LocalPort.free()
            let url = "rtmp://127.0.0.1:\(port)/live/belt"
            let bus = try await Self.bus("rtmp://127.0.0.1:\(port)")
            let server = try await Self.serve(bus, ["-f", "flv", "-listen", "1", "-i", url], port, to: "a.mkv")
            let result = try await bus.run(
                "camerabus", ["record", "cam0", "--mic", "mic0", "--to", url, "--duration", "2"],
                by: .after(seconds: 60))
            #expect(result.status == 0 && result.standardOutput == "\(url)\n", "\(result)\n\(bus.log)")
            #expect(try await server.end(by: .after(seconds: 20)).status == 0)
            try await Self.check("\(bus.scratchPath)/a.mkv", codecs: ["h264", "aac"])
            try await bus.stop()
        }
    }
}
