import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// What clients on other machines have when the bus, or the gateway, is another one.
    @Suite(.timeLimit(.minutes(5))) struct RemoteReturn {
        /// Asks as a gateway does.
        private func ask(
            _ bus: BusHarness, _ method: String, _ params: JSONValue = [:], as role: Request.Principal.Role
        ) throws -> Result<JSONValue, BusError> {
            let principal = Request.Principal(name: "desk", role: role)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.send([
                [], Request(id: 7, method: method, params: params, onBehalfOf: principal).serialized,
            ])
            return try client.reply(within: 15).result
        }

        @Test func `what a client has from the earlier bus continues until it is identified`() async throws {
            let bus = try await BusHarness(virtual: 1, configuration: "[permission]\nremote_role = \"control\"\n")
            let refusal = try ask(bus, "bus.shutdown", as: .admin)
            #expect(throws: BusError.self) { try refusal.get() }
            let started = try ask(bus, "movie.start", ["device": "cam0", "detached": true], as: .admin).get()
            let id = try #require(started["movie"]?.string)
            let topic = "state/movie/\(id)/"
            let state = try await bus.wait(for: topic) {
                $0?["state"] == "recording" && ($0?["frames"]?.integer ?? 0) > 3
            }
            #expect(state?["owner"]?["pid"] == 0 && state?["owner"]?["name"] == "desk")

            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let frames = try await bus.wait(for: topic) { $0?["state"] == "recording" }?["frames"]?.integer ?? 0
            let ears = try Movies.Ears(bus)
            let client = try RawClient(path: bus.directory.commandSocket)
            _ = try client.call("authorization.grant", ["uid": 12345, "media": "video"])
            // It would end within a second.
            _ = try await bus.wait(for: topic) { $0 == nil || ($0?["frames"]?.integer ?? 0) > frames + 45 }
            #expect(try client.call("movie.list")["movies"]?.array?.map { $0["id"] } == [.string(id)])
            _ = try ask(bus, "bus.ping", as: .nobody).get()
            #expect(try ears.next("didFinishRecording", of: id)["reason"] == "unauthorized")
            try await bus.stop()
        }

        @Test func `a user removed while no gateway ran has nothing when the next gateway runs`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let gateway = try await RemoteGateway(bus)
            let probe = try RemoteProbe(gateway, try gateway.add("desk", .control))
            let started = try probe.call("movie.start", ["device": "cam0", "detached": true])
            let id = try #require(started["movie"]?.string)
            let ears = try Movies.Ears(bus)
            gateway.program.process.send(SIGTERM)
            _ = try await gateway.program.end()
            // It begins with an empty file of keys.
            let next = try await RemoteGateway(bus)
            #expect(try ears.next("didFinishRecording", of: id)["reason"] == "unauthorized")
            // It says, too, when it has no bus.
            try await bus.killCoordinator()
            try await eventually { next.program.standardError.contains("the connection to the bus is lost") }
            try await bus.startCoordinator()
            try await eventually { next.program.standardError.split(separator: "connected to the bus").count > 2 }
            try await bus.stop()
        }

        @Test func `a user removed while no bus ran has nothing when the bus is back, by another gateway`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let gateway = try await RemoteGateway(bus)
            let probe = try RemoteProbe(gateway, try gateway.add("desk", .control))
            let started = try probe.call("movie.start", ["device": "cam0", "detached": true])
            let id = try #require(started["movie"]?.string)
            try await bus.killCoordinator()
            try await eventually { gateway.program.standardError.contains("the connection to the bus is lost") }
            try gateway.revoke("desk")
            try await eventually { gateway.program.standardError.contains("a key was revoked") }
            gateway.program.process.send(SIGTERM)
            _ = try await gateway.program.end()
            try await bus.startCoordinator()
            let ears = try Movies.Ears(bus)
            let next = try await RemoteGateway(bus)
            #expect(try ears.next("didFinishRecording", of: id)["reason"] == "unauthorized")
            withExtendedLifetime(next) {}
            try await bus.stop()
        }
    }
}
