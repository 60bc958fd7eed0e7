import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// The coordinator is killed, and another one comes.
    @Suite(.timeLimit(.minutes(5))) struct Death {
        @Test func `four cameras stream on, and the lock's holder still holds it`() async throws {
            let bus = try await BusHarness(virtual: 4)
            let cameras = try bus.devices()
            // Two frames wait for a subscriber: at this rate that is long enough on a machine that has other things to
            // do.
            let first = try RawClient(path: bus.directory.commandSocket)
            let mine =
                try first.call("device.lock", ["devices": .array(cameras.map(JSONValue.string))])["lock"] ?? .null
            try first.call(
                "device.configure",
                ["lock": mine, "changes": .array(cameras.map { ["device": .string($0), "frameRate": 10] })])
            try first.call("device.unlock", ["lock": mine])
            let recorder = KillRecorder()
            let stalls = try StallWatcher(recorder)
            let watcher = try await FrameWatcher(bus, cameras, recorder)
            let client = try await bus.connect()
            let lock = try await client.lock(["cam0", "cam1"])
            let pids = try bus.workerPIDs()
            try await bus.killCoordinator()
            let before = recorder.written.frames.count
            // Frames come with no coordinator there at all.
            try await eventually { recorder.written.frames.count > before + 20 }
            try await bus.startCoordinator()
            let change: JSONValue = ["device": "cam0", "controls": ["brightness": 7]]
            let answer = try await client.configure([change], lock: lock.token)
            #expect(answer["applied"]?["cam0"]?["controls"]?["brightness"] == 7)
            let error = try #require(
                try RawClient(path: bus.directory.commandSocket).refusal("device.lock", ["devices": "cam1"]))
            #expect(error.reason == .deviceBusy)
            #expect(error.data["holder"]?["pid"]?.integer == Int64(CurrentProcess.pid))
            #expect(try await client.device("cam1")["lock"]?["fence"]?.integer == lock.fence)
            #expect(try bus.workerPIDs() == pids)
            try await client.unlock(lock)
            let next = try await client.lock(["cam0", "cam1"])
            #expect(next.fence > lock.fence)
            recorder.stop()
            watcher.join()
            stalls.join()
            #expect(KillChecker.violations(recorder.written) == [])
            await client.close()
            try await bus.stop()
        }

        @Test func `a holder that ended meanwhile loses its lock, published in the new epoch`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let holder = try bus.start("camerabus", ["lock", "cam0"])
            let client = try RawClient(path: bus.directory.commandSocket)
            try await eventually { try client.call("device.get", ["device": "cam0"])["device"]?["lock"]?["id"] != nil }
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket, topics: ["event/lock/"])
            try await bus.killCoordinator()
            holder.process.send(SIGKILL)
            _ = try await holder.end()
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            let epoch = try again.call("bus.hello", ["client": "a test"])["epoch"]
            try again.call("device.lock", ["devices": "cam0"])
            let event = try JSONValue(parsing: try #require(try events.receive().last).bytes)
            #expect(event["cause"] == "holderExited" && event["epoch"] == epoch)
            try await bus.stop()
        }

        @Test func `a holder that does not come back within five seconds of the new start loses its lock`() async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let script = """
                import json, signal, sys, zmq
                s = zmq.Context().socket(zmq.DEALER); s.linger = 0; s.connect("ipc://" + sys.argv[1])
                s.send_multipart([b"", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "device.lock", "params": {"devices": "cam0"}}).encode()])
                s.recv_multipart(); print("locked", flush=True); signal.pause()
                """
            let holder = try bus.start(Programs.python, ["-c", script, bus.directory.commandSocket])
            try await eventually { holder.standardOutput == "locked\n" }
            try await bus.killCoordinator()
            holder.process.send(SIGSTOP)
            let began = MonotonicClock.now()
            try await bus.startCoordinator()
            // Its connection is libzmq's affair, whose thread is stopped as well; so it never comes.
            let client = try RawClient(path: bus.directory.commandSocket)
            _ = try client.call("device.lock", ["devices": "cam0", "wait": 15_000], within: 20)
            #expect(MonotonicClock.now() - began > 5_000_000_000)
            holder.process.send(SIGKILL)
            try await bus.stop()
        }

        @Test func `a lease continues with what is left of it`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            let long = try client.call("device.lock", ["devices": "cam0", "lease": 60_000])
            let short = try client.call("device.lock", ["devices": "cam1", "lease": 100])
            // It was granted before now.
            let end = MonotonicClock.now() + 100_000_000
            let until = MonotonicClock.now() + 60_000_000_000
            try await bus.killCoordinator()
            try await eventually { MonotonicClock.now() > end }
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            let locks = try again.call("device.locks")["locks"]?.array ?? []
            #expect(locks.count == 1)
            #expect(locks.first?["fence"] == long["fence"])
            #expect(try #require(locks.first?["expires"]?.integer) <= until)
            #expect(try again.call("device.renew", ["lock": long["lock"] ?? .null])["expires"]?.integer ?? 0 > until)
            #expect(try again.refusal("device.renew", ["lock": short["lock"] ?? .null])?.reason == .lockLost)
            try await bus.stop()
        }

        @Test func `a repeated request with the same key returns the same lock`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let first = try client.call("device.lock", ["devices": "cam0", "wait": 5], key: "mine")
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let again = try client.call("device.lock", ["devices": "cam0", "wait": 5], key: "mine")
            #expect(again["fence"] == first["fence"])
            // Another secret: the first one was lost, for all that the bus knows.
            #expect(try client.refusal("device.unlock", ["lock": first["lock"] ?? .null])?.reason == .lockLost)
            try client.call("device.unlock", ["lock": again["lock"] ?? .null])
            // Another request is another lock, also under the same key after one more start.
            try client.call("device.lock", ["devices": "cam0"], key: "mine2")
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            #expect(
                try client.refusal("device.lock", ["devices": "cam0", "note": "x"], key: "mine2")?.reason
                    == .deviceBusy)
            try await bus.stop()
        }

        @Test func `a change over two devices is made on both or on none`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try await bus.connect()
            let lock = try await client.lock(["cam0", "cam1"])
            func changes(_ value: Int64) -> [JSONValue] {
                ["cam0", "cam1"].map { ["device": .string($0), "controls": ["brightness": .integer(value)]] }
            }
            func values() async throws -> [Int64?] {
                var values: [Int64?] = []
                for device in ["cam0", "cam1"] {
                    let controls = try await client.controls(device)
                    values.append(controls.first { $0["name"] == "brightness" }?["value"]?.integer)
                }
                return values
            }
            _ = try await client.configure(changes(1), lock: lock.token)
            // cam0 has long applied when cam1 is killed in the midst of it, so to speak.
            try RawClient(path: bus.directory.commandSocket).call(
                "fault.inject", ["device": "cam1", "fault": "slow", "milliseconds": 2000])
            let running = Task { try await client.configure(changes(2), lock: lock.token) }
            try await eventually {
                try RawClient(path: bus.directory.commandSocket).call("device.get", ["device": "cam0"])["device"]?[
                    "controls"]?["brightness"] == 2
            }
            try await bus.killCoordinator()
            _ = await running.result
            try await bus.startCoordinator()
            try RawClient(path: bus.directory.commandSocket).call(
                "fault.inject", ["device": "cam1", "fault": "none"])
            #expect(try await values() == [1, 1])
            #expect(bus.log.contains("a change that was left unfinished is settled"))
            _ = try await client.configure(changes(3), lock: lock.token)
            #expect(try await values() == [3, 3])
            await client.close()
            try await bus.stop()
        }

        @Test func `another configuration ends the workers that nobody wants, and their locks`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            let lock = try client.call("device.lock", ["devices": ["cam0", "cam1"]])
            let ended = try ProcessDescriptor(pid: #require(try bus.workerPID("cam1")))
            try await bus.killCoordinator()
            try await bus.startCoordinator(arguments: ["--virtual", "1", "--virtual-microphones", "0", "--no-hardware"])
            try await eventually { ended.hasEnded }
            #expect(try client.call("device.list")["devices"]?.array?.count == 1)
            #expect(try client.refusal("device.unlock", ["lock": lock["lock"] ?? .null])?.reason == .lockLost)
            try await bus.stop()
        }

        @Test func `a worker that is stopped is taken over when it goes on, and no second one is started`() async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let pid = try #require(try bus.workerPID("cam0"))
            kill(pid, SIGSTOP)
            try await bus.killCoordinator()
            try await bus.startCoordinator(waits: false)
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try client.call("device.get", ["device": "cam0"])["device"]?["worker"]?["state"] == "starting")
            kill(pid, SIGCONT)
            try await eventually {
                let worker = try client.call("device.get", ["device": "cam0"])["device"]?["worker"]
                return worker?["state"] == "running" && worker?["pid"]?.integer == Int64(pid)
            }
            #expect(try client.call("device.get", ["device": "cam0"])["device"]?["worker"]?["restarts"] == 0)
            try await bus.stop()
        }

        @Test func `a worker that stays stopped is killed, and another one started`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let pid = try #require(try bus.workerPID("cam0"))
            let stopped = try ProcessDescriptor(pid: pid)
            stopped.send(SIGSTOP)
            try await bus.killCoordinator()
            try await bus.startCoordinator(waits: false)
            let client = try RawClient(path: bus.directory.commandSocket)
            try await eventually(by: .after(seconds: 30)) {
                let worker = try client.call("device.get", ["device": "cam0"])["device"]?["worker"]
                return worker?["state"] == "running" && worker?["pid"]?.integer != Int64(pid)
            }
            #expect(stopped.hasEnded)
            try await bus.stop()
        }

        @Test func `a coordinator that stood still kills nobody for its own silence`() async throws {
            let bus = try await BusHarness(virtual: 2)
            try await eventually { try bus.workerPIDs().count == 2 }
            let pids = try bus.workerPIDs()
            let beats = try RawClient(.subscribe, path: bus.directory.mediaSocket("cam0"))
            try beats.socket.subscribe("heartbeat/")
            _ = try beats.receive()
            kill(bus.pid, SIGSTOP)
            // One a second, for longer than a worker may be silent.
            for _ in 0..<11 { _ = try beats.receive() }
            kill(bus.pid, SIGCONT)
            let client = try RawClient(path: bus.directory.commandSocket)
            for device in try client.call("device.list")["devices"]?.array ?? [] {
                #expect(device["worker"]?["state"] == "running" && device["worker"]?["restarts"] == 0)
            }
            #expect(try bus.workerPIDs() == pids)
            #expect(!bus.log.contains("worker is silent"))
            try await bus.stop()
        }

        @Test func `a worker that takes its time to be loaded is waited for`() async throws {
            let folder = try TemporaryDirectory()
            let slow = "\(folder.path)/slow-worker"
            let script = "#!/bin/sh\nsleep 12\nexec \(Programs.path("camerabus-worker")) \"$@\"\n"
            try File.replace(slow, with: Array(script.utf8), mode: 0o700)
            let bus = try await BusHarness(
                virtual: 1, arguments: ["--worker", slow], deadline: .after(seconds: 60))
            let client = try RawClient(path: bus.directory.commandSocket)
            try await eventually(by: .after(seconds: 60)) {
                let worker = try client.call("device.get", ["device": "cam0"])["device"]?["worker"]
                #expect(worker?["restarts"] == 0)
                return worker?["state"] == "running"
            }
            try await bus.stop()
        }

        @Test func `a worker has none of the coordinator's descriptors, nor of those that it was started with`()
            async throws
        {
            // As a careless parent leaves it: a descriptor that is not close-on-exec.
            let inherited = open("/dev/zero", O_RDONLY)
            #expect(inherited >= 0)
            let bus = try await BusHarness(virtual: 2)
            close(inherited)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("device.lock", ["devices": "cam0"])
            let ours = try descriptors(bus.pid)
            #expect(ours.values.contains("/dev/zero"))
            for pid in try bus.workerPIDs() {
                let theirs = try descriptors(pid)
                #expect(!theirs.values.contains("/dev/zero"))
                #expect(!theirs.values.contains { $0.hasSuffix("camerabusd.lock") || $0.contains("state.json") })
                // Sockets and pipes have names of their own; standard input, output and error are meant to be shared.
                let shared = Set(theirs.filter { $0.key > 2 }.values).intersection(ours.filter { $0.key > 2 }.values)
                #expect(shared.allSatisfy { $0.hasPrefix("anon_inode:") || $0 == "/dev/urandom" }, "\(shared)")
            }
            try await bus.stop()
        }

        private func descriptors(_ pid: Int32) throws -> [Int: String] {
            let directory = try #require(opendir("/proc/\(pid)/fd"))
            defer { closedir(directory) }
            var links: [Int: String] = [:]
            while let entry = readdir(directory) {
                let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                    String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                }
                guard let number = Int(name) else { continue }
                var buffer = [UInt8](repeating: 0, count: 4096)
                let count = readlink("/proc/\(pid)/fd/\(number)", &buffer, buffer.count)
                if count > 0 { links[number] = String(decoding: buffer[..<count], as: UTF8.self) }
            }
            return links
        }

        @Test func `camerabus lock holds on, and its command does not notice`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let gate = try Gate("\(bus.scratchPath)/gate")
            let script = """
                echo ready; \(gate.waiting)
                camerabus call device.configure "{\\"lock\\":\\"$CAMERABUS_LOCK\\",\\"changes\\":[{\\"device\\":\\"cam0\\",\\"controls\\":{\\"brightness\\":9}}]}"
                """
            let program = try bus.start("camerabus", ["lock", "cam0", "--", "sh", "-c", script])
            try await eventually { program.standardOutput.contains("ready") }
            for _ in 0..<3 {
                try await bus.killCoordinator()
                try await bus.startCoordinator()
            }
            try gate.open()
            let result = try await program.end()
            #expect(result.status == 0, "\(result)")
            #expect(result.standardError == "")
            #expect(try RawClient(path: bus.directory.commandSocket).call("device.locks")["locks"]?.array == [])
            try await bus.stop()
        }
    }
}
