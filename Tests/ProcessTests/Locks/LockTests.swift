import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Exclusive configuration between real processes.
    @Suite(.timeLimit(.minutes(5))) struct Locks {
        @Test func `the second client learns who holds the device, and a killed holder's lock is free`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let holder = try bus.start("camerabus", ["lock", "cam0"])
            let client = try RawClient(path: bus.directory.commandSocket)
            try await eventually { try client.call("device.get", ["device": "cam0"])["device"]?["lock"]?["id"] != nil }
            let error = try #require(try client.refusal("device.lock", ["devices": ["cam1", "cam0"]]))
            #expect(error.reason == .deviceBusy)
            #expect(error.data["holder"]?["pid"]?.integer == Int64(holder.process.pid))
            // All or nothing: cam1 was not taken.
            #expect(try client.call("device.get", ["device": "cam1"])["device"]?["lock"] == .null)
            try client.start("device.lock", ["devices": ["cam1", "cam0"], "wait": 10_000])
            try await eventually { try bus.metric("lock_waits") == 1 }
            holder.process.send(SIGKILL)
            let lock = try client.reply(within: 10).result.get()
            #expect(lock["fence"]?.integer == 2)
            try await bus.stop()
        }

        @Test func `a change needs the lock, and an old token is refused`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            let change: JSONValue = ["device": "cam0", "frameRate": 15]
            #expect(try client.refusal("device.configure", ["changes": [change]])?.reason == .lockRequired)
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            #expect(lock.string?.count == 32)
            _ = try client.call("device.configure", ["lock": lock, "changes": [change]])
            let other: JSONValue = ["device": "cam1", "frameRate": 15]
            #expect(try client.refusal("device.configure", ["lock": lock, "changes": [other]]) != nil)
            _ = try client.call("device.unlock", ["lock": lock])
            let error = try #require(try client.refusal("device.configure", ["lock": lock, "changes": [change]]))
            #expect(error.reason == .lockLost)
            #expect(error.data["fence"]?.integer ?? 0 >= 1)
            #expect(try client.refusal("device.unlock", ["lock": lock])?.reason == .lockLost)
            try await bus.stop()
        }

        @Test func `waiting is fair, ends at its time, and can be given up`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let clients = try (0..<4).map { _ in try RawClient(path: bus.directory.commandSocket) }
            var lock = try clients[0].call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            try clients[1].start("device.lock", ["devices": "cam0", "wait": 20_000], key: "first")
            try await eventually { try bus.metric("lock_waits") == 1 }
            try clients[2].start("device.lock", ["devices": "cam0", "wait": 20_000])
            try await eventually { try bus.metric("lock_waits") == 2 }
            #expect(try clients[3].refusal("device.lock", ["devices": "cam0", "wait": 50])?.reason == .lockTimeout)
            #expect(try clients[3].call("bus.cancel", ["key": "first"])["cancelled"] == true)
            #expect(throws: BusError.self) { try clients[1].reply().result.get() }
            try clients[1].start("device.lock", ["devices": "cam0", "wait": 20_000])
            try await eventually { try bus.metric("lock_waits") == 2 }
            try clients[0].call("device.unlock", ["lock": lock])
            lock = try clients[2].reply().result.get()["lock"] ?? .null
            try clients[2].call("device.unlock", ["lock": lock])
            _ = try clients[1].reply().result.get()
            try await bus.stop()
        }

        @Test func `a lease outlives its connection and ends at its time`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let lock = try client.call("device.lock", ["devices": "cam0", "lease": 3000])["lock"] ?? .null
            let expires = try #require(try client.call("device.renew", ["lock": lock])["expires"]?.integer)
            #expect(expires > MonotonicClock.now())
            let other = try RawClient(path: bus.directory.commandSocket)
            _ = try other.call("device.lock", ["devices": "cam0", "wait": 10_000])
            #expect(MonotonicClock.now() >= expires)
            #expect(try client.refusal("device.renew", ["lock": lock])?.reason == .lockLost)
            try await bus.stop()
        }

        @Test func `a lock ends when its process has let go of its last connection`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let script = """
                import json, signal, sys, zmq
                s = zmq.Context().socket(zmq.DEALER); s.linger = 0; s.connect("ipc://" + sys.argv[1])
                s.send_multipart([b"", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "device.lock", "params": {"devices": "cam0"}}).encode()])
                s.recv_multipart(); s.close(); print("closed", flush=True); signal.pause()
                """
            let holder = try bus.start(Programs.python, ["-c", script, bus.directory.commandSocket])
            let client = try RawClient(path: bus.directory.commandSocket)
            try await eventually { try client.call("device.get", ["device": "cam0"])["device"]?["lock"]?["id"] != nil }
            _ = try client.call("device.lock", ["devices": "cam0", "wait": 15_000], within: 20)
            #expect(!holder.process.hasEnded)
            holder.process.send(SIGKILL)
            try await bus.stop()
        }

        @Test func `an administrator takes a lock over, and its former holder is notified`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let loser = try RawClient(path: bus.directory.commandSocket)
            let lock = try loser.call("device.lock", ["devices": ["cam0", "cam1"]])["lock"] ?? .null
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket)
            try events.socket.subscribe("event/lock/")
            try events.socket.subscribe("ack/here/")
            _ = try events.receive()
            _ = try loser.call("device.takeOver", ["devices": "cam0"])
            let event = try JSONValue(parsing: try #require(try events.receive().last).bytes)
            #expect(event["cause"] == "takenOver")
            #expect(try loser.refusal("device.unlock", ["lock": lock])?.reason == .lockLost)
            #expect(try loser.call("device.get", ["device": "cam1"])["device"]?["lock"] == .null)
            try await bus.stop()
        }

        @Test func `waiting clients keep waiting when a lock is taken over, and is told of`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let loser = try RawClient(path: bus.directory.commandSocket)
            try loser.call("device.lock", ["devices": ["cam0", "cam1"], "note": "the loser"])
            let waiter = try RawClient(path: bus.directory.commandSocket)
            try waiter.start("device.lock", ["devices": "cam0", "wait": 20_000, "note": "the waiter"])
            let other = try RawClient(path: bus.directory.commandSocket)
            try other.start("device.lock", ["devices": "cam1", "wait": 20_000])
            try await eventually { try bus.metric("lock_waits") == 2 }
            let told = try await bus.run("camerabus", ["locks"])
            #expect(told.standardOutput.contains("WAITS FOR") && told.standardOutput.contains("the waiter"))
            let winner = try bus.start(
                "camerabus", ["lock", "cam0", "--take-over", "--note", "the winner", "--", "sh", "-c", "echo on; cat"])
            try await eventually { winner.standardOutput == "on\n" || winner.process.hasEnded }
            // The loser's other device is free, and whoever waited for it has it.
            #expect(try other.reply().result.get()["devices"] == ["cam1"])
            _ = try await winner.end()
            #expect(try waiter.reply().result.get()["devices"] == ["cam0"])
            let refused = try await bus.run("camerabus", ["lock", "cam0", "--take-over", "--wait", "1"])
            #expect(refused.status == 2)
            try await bus.stop()
        }

        @Test(.enabled(if: CurrentProcess.uid == 0, "needs a process namespace, which root may make"))
        func `a process that the bus can't see is given a lease of ten seconds`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let other = try TemporaryDirectory()
            let path = "\(other.path)/bus"
            let namespace = try bus.start(
                "unshare",
                [
                    "--pid", "--fork", "--kill-child", "--mount-proc", Programs.path("camerabusd"), "--runtime-dir",
                    path,
                    "--virtual", "1", "--no-hardware",
                ])
            defer { namespace.process.send(SIGKILL) }
            try await eventually { namespace.standardError.contains("ready") || namespace.process.hasEnded }
            let client = try RawClient(path: "\(path)/command.sock")
            #expect(try client.call("bus.hello", ["client": "outside"])["you"]?["pid"] == 0)
            let lock = try client.call("device.lock", ["devices": "cam0"])
            let told = try client.call("device.locks")["locks"]?[0]
            #expect(told?["lease"] == 10_000 && told?["holder"]?["pid"] == 0)
            try client.call("device.renew", ["lock": lock["lock"] ?? .null])
            // What somebody waits for by a gateway that can't be seen ends all the same when that says so.
            let gateway = try RawClient(path: "\(path)/command.sock")
            let desk = Request.Principal(name: "desk", role: .control)
            let wish: JSONValue = ["devices": "cam0", "wait": 60_000]
            try gateway.send([[], Request(id: 1, method: "device.lock", params: wish, onBehalfOf: desk).serialized])
            try gateway.send([[], Request(id: 2, method: "bus.leave", onBehalfOf: desk).serialized])
            let replies = [try gateway.reply(), try gateway.reply()]
            #expect(throws: BusError.self) { try replies.first { $0.id == 1 }?.result.get() }
            try client.call("bus.shutdown")
            _ = try await namespace.end()
            other.remove()
            try await bus.stop()
        }

        @Test func `what was granted can't be given up any more`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let lock = try client.call("device.lock", ["devices": "cam0"], key: "granted")["lock"] ?? .null
            #expect(try client.call("bus.cancel", ["key": "granted"])["cancelled"] == false)
            try client.call("device.unlock", ["lock": lock])
            try await bus.stop()
        }

        @Test func `a flood of questions leaves a device that can be configured`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let floods = try (0..<3).map { _ in try RawClient(path: bus.directory.commandSocket) }
            let client = try RawClient(path: bus.directory.commandSocket)
            for round in 0..<40 {
                for flood in floods { for _ in 0..<25 { try flood.start("device.controls", ["device": "cam0"]) } }
                let change: JSONValue = ["device": "cam0", "controls": ["brightness": .integer(Int64(round))]]
                try client.call("device.set", change)
            }
            let set = try client.call("device.set", ["device": "cam0", "controls": ["brightness": 7]])
            #expect(set["applied"]?["cam0"]?["controls"]?["brightness"] == 7)
            withExtendedLifetime(floods) {}
            try await bus.stop()
        }

        @Test func `a request with a key is carried out once`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let first = try client.call("device.lock", ["devices": "cam0"], key: "k")
            #expect(try client.call("device.lock", ["devices": "cam0"], key: "k") == first)
            #expect(try client.refusal("device.lock", ["devices": ["cam0"]], key: "k")?.data["path"] == "key")
            try await bus.stop()
        }
    }
}
