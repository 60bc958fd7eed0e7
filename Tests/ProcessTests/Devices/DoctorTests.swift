import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// `camerabus who` and `camerabus doctor` with the programs that people have.
    @Suite(.timeLimit(.minutes(5))) struct WhoAndDoctor {
        private func doctor(
            _ bus: BusHarness, _ arguments: [String] = []
        ) async throws -> (result: ProgramResult, checks: [String: JSONValue]) {
            let result = try await bus.run("camerabus", ["doctor", "--json"] + arguments)
            let list = try JSONValue(parsing: result.standardOutput)["checks"]?.array ?? []
            let pairs = list.compactMap { check in check["id"]?.string.map { ($0, check) } }
            return (result, Dictionary(pairs) { first, _ in first })
        }

        private func findings(_ check: JSONValue?) -> [String] {
            check?["findings"]?.array?.compactMap { $0["id"]?.string } ?? []
        }

        @Test func `who holds, waits for and streams a camera is told`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let free = try await bus.run("camerabus", ["who", "cam1"])
            #expect(free.status == 0 && free.standardOutput.split(separator: "\n").last == "cam1    free", "\(free)")
            let holder = try bus.start("camerabus", ["lock", "cam0", "--note", "calibration"])
            try await eventually { holder.standardOutput.utf8.count == 33 }
            let waiter = try bus.start("camerabus", ["lock", "cam0", "cam1", "--wait", "60", "--", "true"])
            try await eventually { try bus.metric("lock_waits") == 1 }
            let reader = try bus.start("camerabus", ["frames", "cam0", "gray:64x0@5"])
            try await eventually { reader.standardOutput.split(separator: "\n").count > 1 }
            let table = try await bus.run("camerabus", ["who"]).standardOutput
            for words in [
                "cam0    locked   camerabus (pid \(holder.process.pid), uid \(CurrentProcess.uid))",
                "cam0    waits    camerabus (pid \(waiter.process.pid), uid \(CurrentProcess.uid))",
                "cam0    streams  camerabus (pid \(reader.process.pid), uid \(CurrentProcess.uid))", "gray:64x0@5",
                "calibration",
            ] { #expect(table.contains(words), "\(table)") }
            let json = try JSONValue(
                parsing: try await bus.run("camerabus", ["who", "cam0", "--json"]).standardOutput)["devices"]?[0]
            #expect(json?["subscribers"]?[0]?["pid"] == JSONValue(reader.process.pid))
            #expect(json?["waiters"]?[0]?["devices"] == ["cam0", "cam1"] && json?["complete"] == true)
            // Who is killed is not told any more.
            reader.process.send(SIGKILL)
            try await eventually {
                let usage = try await bus.run("camerabus", ["call", "device.who", "{\"device\": \"cam0\"}"])
                return try JSONValue(parsing: usage.standardOutput)["subscribers"] == []
            }
            let unknown = try await bus.run("camerabus", ["who", "nobody"])
            #expect(unknown.status == 1 && unknown.standardError.hasPrefix("deviceNotFound: "), "\(unknown)")
            try await bus.stop()
        }

        @Test func `a device whose worker is gone is still told of`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let holder = try bus.start("camerabus", ["lock", "cam0"])
            try await eventually { holder.standardOutput.utf8.count == 33 }
            let worker = try #require(try bus.workerPID("cam0"))
            kill(worker, SIGSTOP)
            let asking = try bus.start("camerabus", ["who", "cam0", "--json", "--timeout", "30"])
            try await eventually { try bus.metric("requests_total") > 4 }
            kill(worker, SIGKILL)
            let result = try await asking.end()
            let usage = try JSONValue(parsing: result.standardOutput)["devices"]?[0]
            #expect(usage?["lock"]?["holder"]?["pid"] == JSONValue(holder.process.pid), "\(result)")
            #expect(usage?["subscribers"] == [])
            try await bus.stop()
        }

        @Test func `without a bus a node's holders are told all the same`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let elsewhere = ["--runtime-dir", "\(bus.directory.path)-not"]
            let held = try FileDescriptor(opening: "/dev/zero", O_RDONLY)
            let sleeper = try ChildProcess(program: "/bin/sleep", arguments: ["60"], standardInput: held.rawValue)
            defer {
                sleeper.process.send(SIGKILL)
                _ = sleeper.reap()
            }
            let result = try await bus.run("camerabus", ["who", "/dev/zero"] + elsewhere)
            #expect(
                result.status == 0 && result.standardOutput.contains("sleep (pid \(sleeper.process.pid), "), "\(result)"
            )
            #expect(result.standardOutput.contains("has /dev/zero open"))
            for (arguments, status) in [(["who", "/dev/null/x"], 1), (["who", "cam0"], 3)] as [([String], Int32)] {
                #expect(try await bus.run("camerabus", arguments + elsewhere).status == status, "\(arguments)")
            }
            try await bus.stop()
        }

        @Test func `the doctor finds nothing wrong with a bus that works, and each thing that is planted`() async throws
        {
            let bus = try await BusHarness(virtual: 2)
            let sound = try await doctor(bus)
            #expect(
                findings(sound.checks["bus"]) == [] && sound.checks["bus"]?["outcome"] == "healthy", "\(sound.result)")
            for check in ["runtime-directory", "workers", "device-errors", "settings", "versions"] {
                #expect(sound.checks[check]?["outcome"] == "healthy", "\(check): \(sound.result)")
            }
            chmod(bus.directory.path, 0o777)
            let open = try await doctor(bus)
            #expect(open.result.status == 1 && findings(open.checks["runtime-directory"]) == ["runtime-directory-mode"])
            chmod(bus.directory.path, 0o700)
            let limited = try await bus.run("sh", ["-c", "ulimit -n 256; camerabus doctor --runtime-dir /nowhere"])
            #expect(limited.status == 1 && limited.standardOutput.contains("descriptor-limit-low"), "\(limited)")
            let words = try await bus.run("camerabus", ["doctor"])
            #expect(words.standardOutput.contains("✓ bus: ") && words.standardOutput.contains("– settings") == false)
            kill(bus.pid, SIGSTOP)
            let silent = try await doctor(bus, ["--timeout", "0.5"])
            kill(bus.pid, SIGCONT)
            #expect(silent.result.status == 1 && findings(silent.checks["bus"]) == ["bus-silent"], "\(silent.result)")
            #expect(silent.checks["bus"]?["findings"]?[0]?["remedy"]?.string?.contains("\(bus.pid)") == true)
            try await bus.stop()
            let gone = try await bus.run("camerabus", ["doctor", "--json"])
            #expect(gone.status == 1 && gone.standardOutput.contains("\"no-bus\""), "\(gone)")
        }

        @Test func `a bus that was killed is told from one that never ran`() async throws {
            let bus = try await BusHarness(virtual: 0)
            kill(bus.pid, SIGKILL)
            try await eventually { !UnixSocket.isLive(bus.directory.commandSocket) }
            let (result, checks) = try await doctor(bus)
            #expect(findings(checks["bus"]) == ["bus-left-over"], "\(result)")
        }
    }
}
