import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests.Permission {
    @Test func `decisions hold without a coordinator, with the next one, and in new workers`() async throws {
        let bus = try await bus()
        let other = OtherUser.second
        try await allow(bus, Self.user)
        try await deny(bus, other)
        let allowed = try watch(bus, .frame, as: Self.user, "native")
        let denied = try watch(bus, .frame, as: other, "native")
        try await eventually { lines(allowed, "frame").count > 3 }
        try await bus.killCoordinator()
        // Without it: who comes now is judged by what was told before.
        let late = try watch(bus, .frame, as: Self.user, "native")
        try await eventually { lines(late, "frame").count > 3 }
        try await bus.startCoordinator()
        let worker = try #require(try bus.workerPID("cam0"))
        kill(worker, SIGKILL)
        try await eventually { lines(allowed, "in").count == 2 && lines(late, "in").count == 2 }
        let count = lines(allowed, "frame").count
        try await eventually { lines(allowed, "frame").count > count + 3 }
        #expect(lines(denied, "frame").isEmpty && lines(denied, "in").isEmpty)
        let state = try call(bus, "bus.snapshot", ["prefix": "state/authorization/"])["state"]
        #expect(state?["state/authorization/\(Self.user.uid)/"]?["decided"]?["video"]?["status"] == "authorized")
        #expect(state?["state/authorization/\(other.uid)/"]?["decided"]?["video"]?["status"] == "denied")
        try await bus.stop()
    }

    @Test func `a one-time permission ends when the user leaves the bus`() async throws {
        let bus = try await bus()
        let holder = try bus.start("camerabus", ["watch", "state/bus"], as: Self.user)
        try await eventually { !holder.standardOutput.isEmpty }
        try await allow(bus, Self.user, once: true)
        let topic = "state/authorization/\(Self.user.uid)/"
        try await bus.wait(for: topic) { $0?["decided"]?["video"]?["once"] == true }
        holder.process.send(SIGKILL)
        try await bus.wait(for: topic) { $0 == nil || $0 == .null }
        let status = try await bus.run("camerabus", ["permissions", "--json"], as: Self.user)
        #expect(status.standardOutput.contains("\"video\":\"notDetermined\""), "\(status)")
        try await bus.stop()
    }
}
