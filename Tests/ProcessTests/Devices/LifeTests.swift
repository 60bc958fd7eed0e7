import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Start, stop and death of the bus's processes.
    @Suite(.timeLimit(.minutes(5))) struct Life {
        @Test func `SIGTERM ends everything and leaves no socket`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            let pids = try bus.workerPIDs()
            #expect(pids.count == 2)
            try client.call("device.lock", ["devices": "cam0"])
            try client.start("device.lock", ["devices": "cam0", "wait": 60_000])
            try await eventually { try bus.metric("lock_waits") == 1 }
            // stop() itself fails the test when a process or socket is left.
            try await bus.stop()
            guard case .failure(let error) = try client.reply().result else { throw RawClient.TimedOut() }
            #expect(error.reason == .shuttingDown)
            for pid in pids { #expect(kill(pid, 0) == -1) }
        }

        @Test func `a worker that waits to be started again leaves nothing behind`() async throws {
            let bus = try await BusHarness(virtual: 1)
            // The fourth time it is started again after two seconds only.
            for _ in 1...4 {
                try await bus.wait(for: "state/device/cam0/") { $0?["worker"]?["state"] == "running" }
                let pid = try #require(try bus.workerPID("cam0"))
                kill(pid, SIGKILL)
                try await bus.wait(for: "state/device/cam0/") { $0?["worker"]?["pid"] != JSONValue(pid) }
            }
            try await bus.stop()
        }

        @Test func `bus.shutdown ends it too`() async throws {
            let bus = try await BusHarness(virtual: 1)
            try RawClient(path: bus.directory.commandSocket).call("bus.shutdown")
            try await bus.waitForEnd()
            try await bus.stop()
        }

        @Test func `a second coordinator on the directory is refused and disturbs nothing`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let result = try await bus.run("camerabusd", ["--runtime-dir", bus.directory.path])
            #expect(result.status == 1)
            #expect(result.standardError.contains("another coordinator"))
            try RawClient(path: bus.directory.commandSocket).call("bus.ping")
            try await bus.stop()
        }

        @Test func `a path too long, a wrong key and a wrong value are told at start`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let long = "/tmp/\(String(repeating: "x", count: 100))"
            let result = try await bus.run("camerabusd", ["--runtime-dir", long])
            #expect(result.status == 1 && result.standardError.contains("too long"))
            for (text, word) in [
                ("[bus]\nruntime_dri = \"/tmp\"", "bus.runtime_dri"),
                ("[devices]\nvirtual = \"two\"", "devices.virtual"),
                ("[devices", "line 1"), ("[bus]\n[[[\n", "line 2"),
                ("[aliases]\nFront = \"virtual-0\"", "aliases.Front"),
            ] {
                let path = try bus.write(text, to: "wrong.toml")
                let result = try await bus.run(
                    "camerabusd", ["--config", path, "--runtime-dir", bus.directory.path + "2"])
                #expect(result.status == 1 && result.standardError.contains(word), "\(text): \(result.standardError)")
            }
            try await bus.stop()
        }

        @Test func `SIGHUP reads the configuration again, and a wrong one changes nothing`() async throws {
            let bus = try await BusHarness(virtual: nil, configuration: "[devices]\nvirtual = 1\nhardware = false\n")
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try bus.devices() == ["cam0"])
            _ = try bus.write(
                "[devices]\nvirtual = 2\nhardware = false\n[aliases]\nfront = \"virtual-1\"\n", to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually { try bus.devices() == ["cam0", "front"] }
            try await eventually {
                try client.call("device.get", ["device": "front"])["device"]?["worker"]?["state"] == "running"
            }
            _ = try bus.write("[devices]\nvirtual = \"many\"\n", to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually { try bus.problems() == ["configurationRefused"] }
            #expect(try await bus.run("camerabus", ["status"]).standardOutput.contains("devices.virtual"))
            #expect(try bus.devices() == ["cam0", "front"])
            // A text that ends the parser of TOML.
            _ = try bus.write("[devices]\nvirtual = 2\n[.\n", to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually {
                try await bus.run("camerabus", ["status"]).standardOutput.contains("line 3: this is not valid TOML")
            }
            #expect(try bus.devices() == ["cam0", "front"] && bus.problems() == ["configurationRefused"])
            _ = try bus.write("[devices]\nvirtual = 0\nhardware = false\n", to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually { try bus.devices() == [] }
            #expect(try bus.problems() == ["noDevices"])
            try await bus.stop()
        }

        @Test func `what a client calls itself makes no line of the log and no escape sequence`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let name = "x\n2026-01-01T00:00:00+0000 critical camerabusd: [Coordinator] forged \u{1B}[31m"
            try client.call("bus.hello", ["client": .string(name)])
            try client.call("device.lock", ["devices": "cam0", "note": "two\nlines"])
            try await eventually { bus.log.contains("forged") }
            #expect(!bus.log.contains("\n2026-01-01") && !bus.log.contains("\u{1B}"), "\(bus.log)")
            #expect(bus.log.contains("x\\n2026-01-01T00:00:00+0000 critical"))
            // Nor another field of a line.
            let other = try RawClient(path: bus.directory.commandSocket)
            try other.call("bus.hello", ["client": "x by=0 says \"yes\""])
            #expect(try other.refusal("device.lock", ["devices": "cam0"])?.reason == .deviceBusy)
            try client.call("bus.leave")
            try other.call("device.lock", ["devices": "cam0", "wait": 5000])
            try await eventually { bus.log.contains(#"="x by=0 says \"yes\"""#) }
            try await bus.stop()
        }

        @Test func `what is no file in the state directory does not hold up the start`() async throws {
            let home = try TemporaryDirectory()
            for name in ["takes", "profiles", "rigs", "permissions"] {
                #expect(mkfifo("\(home.path)/\(name).json", 0o600) == 0)
            }
            let bus = try await BusHarness(virtual: 1, arguments: ["--state-dir", home.path])
            #expect(try bus.devices() == ["cam0"])
            for name in ["takes", "profiles", "rigs", "permissions"] {
                #expect(bus.log.contains("\(name).json: Invalid argument"), "\(name): \(bus.log)")
            }
            try await bus.stop()
            // Without the settings of devices it does not start, as they may be whole elsewhere.
            unlink("\(home.path)/devices.json")
            #expect(mkfifo("\(home.path)/devices.json", 0o600) == 0)
            let refused = try await bus.run(
                "camerabusd", ["--runtime-dir", "\(home.path)/bus", "--state-dir", home.path])
            #expect(refused.status == 1 && refused.standardError.contains("devices.json"), "\(refused)")
        }

        @Test func `the state file holds the published state, and no token`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let token = try #require(try client.call("device.lock", ["devices": "cam0"])["lock"]?.string)
            let bytes = try File.read(bus.directory.stateFile, limit: 1 << 20)
            let state = try bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
            #expect(state["locks"]?[0]?["devices"] == ["cam0"])
            #expect(state["fence"]?.integer ?? 0 >= 1)
            #expect(!String(decoding: bytes, as: UTF8.self).contains(token))
            var status = stat()
            #expect(stat(bus.directory.stateFile, &status) == 0 && status.st_mode & 0o777 == 0o600)
            try await bus.stop()
        }

        @Test func `a worker that is killed is started again`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let first = try #require(try bus.workerPIDs().first)
            kill(first, SIGKILL)
            try await eventually {
                let worker = try client.call("device.get", ["device": "cam0"])["device"]?["worker"]
                return worker?["state"] == "running" && worker?["restarts"] == 1
            }
            #expect(try bus.workerPIDs().first != first)
            try await bus.stop()
        }
    }
}
