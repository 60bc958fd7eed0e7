import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Processes that do not report: those that are only slow stay, those that hang are killed.
    @Suite(.timeLimit(.minutes(5))) struct Silence {
        @Test func `a worker that gets no processor is not killed, and goes on when it gets one`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let pid = try #require(try bus.workerPID("cam0"))
            let starvation = try Starvation(of: [pid])
            try await eventually(by: .after(seconds: 90)) {
                bus.log.contains("worker has not reported for") || bus.log.contains("worker is silent")
            }
            // Longer than a worker that hangs is looked at.
            let end = MonotonicClock.now() + 5_000_000_000
            try await eventually { MonotonicClock.now() > end }
            #expect(!bus.log.contains("worker is silent"), "\(bus.log)")
            starvation.end()
            try client.call("device.set", ["device": "cam0", "controls": ["brightness": 7]])
            let worker = try client.call("device.get", ["device": "cam0"])["device"]?["worker"]
            #expect(worker?["state"] == "running" && worker?["restarts"] == 0, "\(worker ?? .null)")
            #expect(try bus.workerPID("cam0") == pid)
            try await bus.stop()
        }
    }
}
