import CameraBusTesting
import Glibc
import JSON
import Testing

/// The harness itself: a test that leaves something behind must fail.
@Suite(.serialized, .timeLimit(.minutes(5))) struct Harness {
    @Test func `a process that is left behind is told`() async throws {
        let bus = try await BusHarness(virtual: 0)
        // Its parent ends at once, so that nobody knows of it but the process table.
        let result = try await bus.run("sh", ["-c", "sleep 600 >/dev/null 2>&1 & echo $!"])
        let pid = try #require(Int32(result.standardOutput.dropLast()))
        let error = await #expect(throws: TestingError.self) { try await bus.stop() }
        #expect(error?.description.contains("\(pid) (sleep)") == true)
        kill(pid, SIGKILL)
    }

    @Test func `a program that does not end is killed in time`() async throws {
        let bus = try await BusHarness(virtual: 0)
        await #expect(throws: TestingError.self) {
            try await bus.run("sleep", ["600"], by: .after(seconds: 1))
        }
        try await bus.stop()
    }

    @Test func `a bus that can't start is told with what it said`() async throws {
        let error = await #expect(throws: TestingError.self) {
            _ = try await BusHarness(virtual: nil, configuration: "[nonsense")
        }
        #expect(error?.description.contains("camerabusd did not become ready") == true)
    }

    @Test func `values are waited for, and in vain only so long`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let value = try await bus.wait(for: "state/device/cam0/") { $0?["worker"]?["state"] == "running" }
        #expect(value?["id"] == "cam0")
        await #expect(throws: TestingError.self) {
            try await bus.wait(for: "state/device/cam9/", by: .after(seconds: 1)) { $0 != nil }
        }
        try await bus.stop()
    }
}
