import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// What cameras are set to for movies.
    @Suite(.timeLimit(.minutes(5))) struct MovieCameras {
        private func start(_ client: RawClient, _ params: JSONValue = [:]) throws -> JSONValue {
            let movie = params.object ?? [:]
            return try client.call(
                "movie.start", .object(movie.merging(["device": "cam0"]) { own, _ in own }), within: 30)
        }

        private func wait(_ bus: BusHarness, smooth: Bool, _ mode: JSONValue) async throws {
            try await bus.wait(for: "state/device/cam0/") {
                $0?["controls"]?["smoothAutoFocusEnabled"] == .bool(smooth)
                    && $0?["controls"]?["videoStabilizationMode"] == mode
            }
        }

        private func stop(_ client: RawClient, _ movie: JSONValue) throws {
            try client.call("movie.stop", ["movie": movie["movie"] ?? .null], within: 30)
        }

        @Test func `a camera is set for its movie, and as it was before at the end, however that comes`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let movie = try start(client, ["stabilization": "auto"])
            #expect(movie["smoothAutoFocus"] == true && movie["stabilization"] == "standard")
            try await wait(bus, smooth: true, "standard")
            let state = try client.call("movie.status", ["movie": movie["movie"] ?? .null])["movie"]
            #expect(state?["smoothAutoFocus"] == true && state?["stabilization"] == "standard")
            try stop(client, movie)
            try await wait(bus, smooth: false, "off")

            // Without a word of it its focus is smooth all the same.
            let plain = try start(client)
            #expect(plain["smoothAutoFocus"] == true && plain["stabilization"] == "off")
            try await wait(bus, smooth: true, "off")
            // Its recorder dies.
            let users = try client.call("device.who", ["device": "cam0"])["subscribers"]?.array ?? []
            let recorder = try #require(users.first { $0["name"] == "camerabus-recorder" }?["pid"]?.integer)
            kill(Int32(recorder), SIGKILL)
            try await wait(bus, smooth: false, "off")

            // Not wanted; and set by a client meanwhile, who has his way.
            let fast = try start(client, ["smoothAutoFocus": false, "stabilization": "standard"])
            #expect(fast["smoothAutoFocus"] == false)
            try await wait(bus, smooth: false, "standard")
            try client.call("device.set", ["device": "cam0", "controls": ["videoStabilizationMode": "standard"]])
            try stop(client, fast)
            try client.call("device.set", ["device": "cam0", "controls": ["contrast": 20]])
            try await wait(bus, smooth: false, "standard")
            try await bus.stop()
        }

        @Test func `who has the camera locked decides, and the answer says so`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            // Of the same process: its own movie is set under it.
            let own = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let first = try start(client)
            #expect(first["smoothAutoFocus"] == true)
            try stop(client, first)
            // Not while it is locked.
            try await wait(bus, smooth: true, "off")
            try client.call("device.unlock", ["lock": own])
            try await wait(bus, smooth: false, "off")

            let holder = try bus.start("camerabus", ["lock", "cam0"])
            try await eventually { holder.standardOutput.utf8.count == 33 }
            let other = try start(client, ["stabilization": "auto"])
            #expect(other["smoothAutoFocus"] == false && other["stabilization"] == "off")
            try stop(client, other)
            holder.process.send(SIGINT)
            try await bus.stop()
        }

        @Test func `the next bus puts it back, when the movie has ended`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let movie = try start(client, ["stabilization": "standard", "detached": true])
            try await wait(bus, smooth: true, "standard")
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            try await bus.wait(for: "state/movie/\(movie["movie"]?.string ?? "")/") { $0?["state"] == "recording" }
            // It is still set for it.
            try again.call("device.set", ["device": "cam0", "controls": ["contrast": 20]])
            try await wait(bus, smooth: true, "standard")
            try stop(again, movie)
            try await wait(bus, smooth: false, "off")
            try await bus.stop()
        }
    }
}
