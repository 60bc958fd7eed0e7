import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

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

        @Test func `a worker that is stopped is killed, and another one serves its device`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let pid = try #require(try bus.workerPID("cam0"))
            kill(pid, SIGSTOP)
            try await eventually(by: .after(seconds: 90)) { bus.log.contains("worker is silent and is killed") }
            try await eventually {
                let worker = try client.call("device.get", ["device": "cam0"])["device"]?["worker"]
                return worker?["state"] == "running" && worker?["pid"]?.integer != Int64(pid)
            }
            try client.call("device.set", ["device": "cam0", "controls": ["brightness": 7]])
            try await bus.stop()
        }

        @Test func `a recorder that is stopped while it encodes is killed, and its movie is reported as failed`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let client = try await bus.connect()
            let movie = try await client.startMovie(["device": "cam0", "path": .string("\(bus.scratchPath)/a.mp4")])
            let updates = try await client.updates(ofMovie: movie.id)
            kill(try #require(bus.pids(of: "camerabus-recorder").first), SIGSTOP)
            try await eventually(by: .after(seconds: 90)) { bus.log.contains("recorder is silent and is killed") }
            var reason: String?
            while reason == nil, let update = try await updates.next() {
                if case .ended(let ending) = update { reason = ending.reason }
            }
            #expect(reason == "recorderCrashed")
            await client.close()
            try await bus.stop()
        }

        @Test func `a recorder that is stopped while its bus dies is killed by the next bus`() async throws {
            let home = try TemporaryDirectory()
            let bus = try await BusHarness(virtual: 1, arguments: ["--state-dir", home.path])
            let client = try RawClient(path: bus.directory.commandSocket)
            let movie = try client.call("movie.start", ["device": "cam0", "fragmentInterval": 1000], within: 60)
            let topic = "state/movie/\(movie["movie"]?.string ?? "")/"
            try await bus.wait(for: topic) { $0?["syncedDuration"]?.integer ?? 0 > 0 }
            kill(try #require(bus.pids(of: "camerabus-recorder").first), SIGSTOP)
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            try await eventually(by: .after(seconds: 90)) { bus.log.contains("recorder is silent and is killed") }
            let next = try RawClient(path: bus.directory.commandSocket)
            try await eventually {
                try next.call("library.get", ["id": movie["movie"] ?? .null])["entry"]?["state"] == "recovered"
            }
            try await bus.stop()
        }

        @Test func `a matcher that is stopped is killed, and another one serves its rig`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("rig.set", ["name": "both", "devices": ["cam0", "cam1"]])
            let reader = try RawClient(
                .subscribe, path: bus.directory.mediaSocket("both"), topics: ["set/both/gray:64x0/"])
            _ = try reader.receive(within: 20)
            let pid = try #require(bus.pids(of: "camerabus-matcher").first)
            kill(pid, SIGSTOP)
            try await eventually(by: .after(seconds: 90)) { bus.log.contains("the matcher is silent and is killed") }
            try await eventually { bus.pids(of: "camerabus-matcher").contains { $0 != pid } }
            withExtendedLifetime(reader) {}
            try await bus.stop()
        }

        @Test func `a child that hangs beside the worker does not keep the next worker from being started`()
            async throws
        {
            let scratch = try TemporaryDirectory()
            // The first one starts the worker as its own child, and hangs when that has ended.
            let script = """
                #!/bin/sh
                worker=\(Programs.path("camerabus-worker"))
                mkdir \(scratch.path)/first 2>/dev/null || exec $worker "$@"
                $worker "$@"
                exec sleep 1000
                """
            try File.replace("\(scratch.path)/worker", with: Array(script.utf8), mode: 0o700)
            let bus = try await BusHarness(virtual: 1, arguments: ["--worker", "\(scratch.path)/worker"])
            let client = try RawClient(path: bus.directory.commandSocket)
            let pid = try #require(try bus.workerPID("cam0"))
            kill(pid, SIGKILL)
            try await eventually(by: .after(seconds: 120)) {
                let worker = try client.call("device.get", ["device": "cam0"])["device"]?["worker"]
                return worker?["state"] == "running" && worker?["pid"]?.integer != Int64(pid)
            }
            #expect(bus.log.contains("worker is silent and is killed"))
            try await bus.stop()
        }

        @Test func `a search for cameras that hangs is killed, and the bus serves its other devices`() async throws {
            let scratch = try TemporaryDirectory()
            let script = """
                #!/bin/sh
                [ "$1" = --list ] && exec sleep 1000
                exec \(Programs.path("camerabus-worker")) "$@"
                """
            try File.replace("\(scratch.path)/worker", with: Array(script.utf8), mode: 0o700)
            let bus = try await BusHarness(
                virtual: nil, arguments: ["--virtual", "1", "--worker", "\(scratch.path)/worker"])
            #expect(bus.log.contains("the search for cameras makes no progress"), "\(bus.log)")
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try client.call("device.list")["devices"]?[0]?["id"] == "cam0")
            try await bus.stop()
        }
    }
}
