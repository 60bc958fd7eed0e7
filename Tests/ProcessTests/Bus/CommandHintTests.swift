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

        @Test func `refusals name what is meant, and commands that help`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let made = try await bus.run("camerabus", ["rigs", "set", "tri", "cam0", "cam1"])
            #expect(made.status == 0, "\(made)")
            for (arguments, words) in [
                (["frames", "tri"], "deviceNotFound: tri is a rig. Add --set"),
                (["rigs", "set", "tri", "cam0", "cam9"], "There are: cam0, cam1.\n"),
                (["session", "create", "cam0", "--priority", "5000"], "invalidParams: priority: must be "),
                (["session", "create", "cam0", "--output", "metadata"], ": A metadata output can't be added"),
                (["session", "show", "none"], "; 'camerabus sessions' lists"),
                (["set", "cam0", "nope=1"], "; 'camerabus controls cam0' lists"),
            ] {
                let result = try await bus.run("camerabus", arguments)
                #expect(result.status == 1 && result.standardError.contains(words), "\(arguments): \(result)")
            }
            let script = try await bus.run(
                "camerabus", ["fault", "cam0", "--script", "-"], input: Array(#"[{"at": "x", "fault": "stall"}]"#.utf8))
            #expect(script.status == 1 && script.standardError.contains("script[0].at: "), "\(script)")
            try await bus.stop()
        }

        @Test func `frames go on when the camera is back, and end in time when it is not`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let program = try bus.start("camerabus", ["frames", "cam0", "gray:320x240", "--timeout", "30"])
            let lines = { program.standardOutput.split(separator: "\n").count }
            try await eventually { lines() > 2 }
            #expect(try await bus.run("camerabus", ["fault", "cam0", "unplug"]).status == 0)
            try await eventually { program.standardError.contains("Waiting for cam0.") }
            #expect(program.standardError.hasPrefix("deviceDisconnected: "), "\(program.standardError)")
            let count = lines()
            #expect(try await bus.run("camerabus", ["fault", "cam0", "replug"]).status == 0)
            try await eventually { lines() > count + 2 }
            program.process.send(SIGINT)
            let result = try await program.end()
            #expect(result.status == 130, "\(result)")
            #expect(result.standardError.split(separator: "\n").count == 1, "\(result)")

            let brief = try bus.start("camerabus", ["frames", "cam0", "gray:320x240", "--timeout", "8"])
            try await eventually { brief.standardOutput.split(separator: "\n").count > 2 }
            #expect(try await bus.run("camerabus", ["fault", "cam0", "unplug"]).status == 0)
            let end = try await brief.end()
            #expect(end.status == 4 && end.standardError.contains("deviceDisconnected: "), "\(end)")
            try await bus.stop()
        }

        @Test func `a session that is run tells its new topics; one that is not says what would be`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let program = try bus.start("camerabus", ["session", "run", "cam0", "--preset", "640x480"])
            try await eventually { program.standardError.contains("frame/cam0/") }
            let id = try #require(program.standardOutput.split(separator: "\n").first.map(String.init))
            #expect(program.standardError.contains("cam0 streams 640x480"), "\(program.standardError)")
            let switched = try await bus.run("camerabus", ["session", "switch", id, "cam1"])
            #expect(switched.standardOutput == "cam1\n", "\(switched)")
            try await eventually { program.standardOutput.contains("videoData: frame/cam1/") }
            #expect(try await bus.run("camerabus", ["fault", "cam1", "unplug"]).status == 0)
            try await eventually { program.standardOutput.contains("wasInterrupted") }
            let away = try await bus.run("camerabus", ["session", "show", id])
            #expect(!away.standardOutput.contains("cam1 streams"), "\(away)")
            let stopped = try await bus.run("camerabus", ["session", "create", "cam0"])
            #expect(stopped.standardError.contains("cam0 would stream "), "\(stopped)")
            let devices = try await bus.run("camerabus", ["devices"]).standardOutput
            #expect(devices.contains("POSITION") && devices.contains(" back ") && devices.contains(" front "))
            program.process.send(SIGINT)
            #expect(try await program.end().status == 130)
            try await bus.stop()
        }

        @Test func `a replay whose file is missing says so`() async throws {
            let bus = try await BusHarness(
                virtual: nil, configuration: "[devices]\nhardware = false\n",
                arguments: ["--replay", "/nonexistent/nosuch.mp4"])
            try await bus.wait(for: "state/device/nosuch/") {
                $0?["error"]?["message"]?.string?.contains("its file is missing") == true
            }
            let frames = try await bus.run("camerabus", ["frames", "nosuch", "--timeout", "5"])
            #expect(frames.status != 0 && frames.standardError.contains("its file is missing"), "\(frames)")
            let session = try await bus.run("camerabus", ["session", "create", "nosuch", "--start"])
            #expect(session.standardError.contains("its file is missing"), "\(session)")
            try await bus.stop()
        }
    }
}
