import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Everybody on the machine can read the arguments of all processes.
    @Suite(.timeLimit(.minutes(5))) struct CommandLineSecrets {
        private func words(_ pid: Int32) -> [String] {
            let bytes = (try? File.read("/proc/\(pid)/cmdline", limit: 1 << 20)) ?? []
            return bytes.split(separator: 0).dropFirst().map { String(decoding: $0, as: UTF8.self) }
        }

        @Test func `no command line shows a path, an owner or a permission`() async throws {
            let home = try TemporaryDirectory()
            let (noted, librarian) = ("\(home.path)/noted", "\(home.path)/librarian")
            let script = """
                #!/bin/sh
                tr '\\0' '\\n' </proc/$$/cmdline >>"\(noted)"
                exec "\(Programs.path("camerabus-librarian"))" "$@"

                """
            try File.replace(librarian, with: Array(script.utf8), mode: 0o700)
            let configuration = """
                [[rig]]
                name = "pair"
                devices = ["cam0", "cam1"]
                [permission.users]
                64117 = "view"

                """
            let bus = try await BusHarness(
                virtual: 2, microphones: 1, configuration: configuration,
                arguments: ["--state-dir", home.path, "--librarian", librarian])
            let client = try RawClient(path: bus.directory.commandSocket)
            let movie = try #require(
                client.call("movie.start", ["device": "cam0", "name": "walk.mkv"], within: 30)["movie"]?.string)
            try client.call("library.list")
            let reader = try RawClient(
                .subscribe, path: bus.directory.mediaSocket("pair"), topics: ["set/pair/gray:64x0/"])
            _ = try reader.receive(within: 20)
            #expect(bus.pids(of: "camerabus-matcher").count == 1)
            for device in ["cam0", "cam1", "mic0"] {
                let pid = try #require(try bus.workerPID(device))
                #expect(words(pid) == ["--device=\(device)", "--arguments-at=3"])
            }
            for pid in bus.pids(of: "camerabus-matcher") { #expect(words(pid) == ["--set=pair", "--arguments-at=3"]) }
            #expect(words(try bus.recorder(of: movie).pid) == ["--movie=\(movie)", "--arguments-at=3"])
            let lines = String(decoding: try File.read(noted, limit: 1 << 20), as: UTF8.self).split(separator: "\n")
            #expect(Set(lines) == ["/bin/sh", Substring(librarian), "--arguments-at=3"])
            withExtendedLifetime(reader) {}
            try client.call("movie.stop", ["movie": .string(movie)], within: 30)
            try await bus.stop()
        }
    }
}
