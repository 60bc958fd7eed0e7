import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

/// What people are told by commands, and what goes on while they watch.
extension ProcessTests {
    @Suite(.timeLimit(.minutes(5))) struct CommandHints {
        @Test func `a pixel format alone keeps size and rate`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let before = try await bus.run(
                "camerabus", ["format", "cam0", "640x480", "--pixel", "YUYV", "--fps", "15"])
            #expect(before.standardOutput == "cam0: YUYV 640x480 at 15 frames/s\n", "\(before)")
            let after = try await bus.run("camerabus", ["format", "cam0", "--pixel", "mjpg"])
            #expect(after.standardOutput == "cam0: MJPG 640x480 at 15 frames/s\n", "\(after)")
            try await bus.stop()
        }
    }
}
