import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Permission as a second user meets it.
    @Suite(
        .timeLimit(.minutes(5)),
        .enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")")) struct Permission
    {
        /// The ways on which pictures leave a worker.
        enum Lane: String, CaseIterable, Sendable {
            case frame, buffer, ring
        }

        private static let user = OtherUser.first
        /// What somebody who may looks at meanwhile: so small that the sockets hold what comes while he does something else.
        private static let witnessed = "gray:64x36@10"

        /// Comes again and again on one lane, and says what it gets: 'frame' and when that was captured, 'in' and 'out' when its
        /// connection comes and goes; of a ring also 'written' when memory changes that it was given before.
        private static let watcher = #"""
            import array, json, mmap, os, socket, struct, sys, time
            lane, directory, rendition = sys.argv[1:4]
            def say(*words):
                print(*words, flush=True)
            def by_message():
                import zmq
                from zmq.utils.monitor import recv_monitor_message
                context = zmq.Context()
                sub = context.socket(zmq.SUB)
                sub.rcvhwm = 2
                monitor = sub.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
                sub.subscribe(f"{lane}/cam0/{rendition}/".encode())
                sub.connect(f"ipc://{directory}/media/cam0.sock")
                poller = zmq.Poller()
                poller.register(sub, zmq.POLLIN)
                poller.register(monitor, zmq.POLLIN)
                was_in = False
                while True:
                    ready = dict(poller.poll())
                    if sub in ready:
                        header = json.loads(sub.recv_multipart()[1])
                        if "error" not in header:
                            say("frame", header["timestamp"]["monotonic"])
                    if monitor in ready:
                        event = recv_monitor_message(monitor)["event"]
                        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                            was_in = True
                            say("in")
                        elif was_in:
                            was_in = False
                            say("out")
            class Ring:
                def __init__(self, descriptor):
                    self.map = mmap.mmap(descriptor, os.fstat(descriptor).st_size, prot=mmap.PROT_READ)
                    self.pixels = struct.unpack_from("<I", self.map, 28)[0]
                    self.slot_bytes = struct.unpack_from("<Q", self.map, 32)[0]
                    self.slots, self.record_bytes, self.table = (
                        struct.unpack_from("<I", self.map, at)[0] for at in (12, 20, 24))
                    self.count = 0
                def news(self):
                    count, newest = struct.unpack_from("<II", self.map, 384)
                    if count == self.count or newest >= self.slots:
                        return None
                    self.count = count
                    return struct.unpack_from("<q", self.map, self.table + newest * self.record_bytes + 24)[0]
                def is_closed(self):
                    return struct.unpack_from("<I", self.map, 392)[0] != 0
                def look(self):
                    # Some lines of each slot: a picture that moves changes them.
                    parts = [self.map[:self.pixels]]
                    for slot in range(self.slots):
                        start = self.pixels + slot * self.slot_bytes
                        parts += [self.map[start + step:start + step + 2048] for step in range(0, self.slot_bytes, 65536)]
                    return hash(b"".join(parts))
            def by_ring():
                old = []
                while True:
                    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    connection.connect(f"{directory}/media/cam0.ring")
                    connection.settimeout(0.01)
                    try:
                        connection.send(json.dumps({"rendition": rendition}).encode())
                    except OSError:
                        pass
                    ring = None
                    while True:
                        try:
                            data, ancillary, _, _ = connection.recvmsg(65536, 64)
                        except TimeoutError:
                            data = None
                        except OSError:
                            data, ancillary = b"", []
                        if data == b"":
                            break
                        if data is not None:
                            for _, _, descriptors in ancillary:
                                descriptor = array.array("i", descriptors)[0]
                                if ring is None:
                                    say("in")
                                ring = Ring(descriptor)
                                say("ring", json.loads(data)["ring"])
                                os.close(descriptor)
                            if not ancillary:
                                say("error", json.loads(data)["error"]["reason"])
                        if ring is not None and (time := ring.news()) is not None:
                            say("frame", time)
                    if ring is not None:
                        say("out")
                        old.append([ring, None])
                    connection.close()
                    for _ in range(5):
                        for entry in old:
                            if entry[0].is_closed():
                                look = entry[0].look()
                                if entry[1] not in (None, look):
                                    say("written")
                                entry[1] = look
                        time_to_wait()
            def time_to_wait():
                time.sleep(0.02)
            by_ring() if lane == "ring" else by_message()
            """#

        private func watch(_ bus: BusHarness, _ lane: Lane, as user: OtherUser, _ rendition: String) throws
            -> RunningProgram
        {
            let arguments = ["-c", Self.watcher, lane.rawValue, bus.directory.path, rendition]
            return try bus.start(OtherUser.python, arguments, as: user)
        }

        private func lines(_ program: RunningProgram, _ word: String) -> [Substring] {
            program.standardOutput.split(separator: "\n").filter { $0.hasPrefix(word) }
        }

        /// The reader's next frames, so many of them.
        private func read(_ reader: FrameReader, _ count: Int, _ body: (FrameReader.Frame) -> Void = { _ in }) throws {
            for _ in 0..<count { body(try reader.next()) }
        }

        private func bus() async throws -> BusHarness {
            try await BusHarness(virtual: 1, configuration: OtherUser.configuration)
        }

        private func call(_ bus: BusHarness, _ method: String, _ params: JSONValue = [:]) throws -> JSONValue {
            try RawClient(path: bus.directory.commandSocket).call(method, params)
        }

        private func isAsked(_ bus: BusHarness, _ user: OtherUser) async throws {
            try await bus.wait(for: "state/authorization/\(user.uid)/") { $0?["asked"] == ["video"] }
        }

        private func allow(_ bus: BusHarness, _ user: OtherUser, once: Bool = false) async throws {
            let result = try await bus.run(
                "camerabus", ["allow", "\(user.uid)", "video"] + (once ? ["--once"] : []))
            try #require(result.status == 0, "\(result)")
        }

        private func deny(_ bus: BusHarness, _ user: OtherUser) async throws {
            let result = try await bus.run("camerabus", ["deny", "\(user.uid)", "video"])
            try #require(result.status == 0, "\(result)")
        }

        // MARK: Pictures

        @Test(arguments: Lane.allCases, ["native", "gray:320x0"])
        func `no picture comes without permission, all come with it, and none when it is taken back`(
            _ lane: Lane, _ rendition: String
        ) async throws {
            let bus = try await bus()
            let witness = try FrameReader(bus, "cam0", Self.witnessed)
            let stranger = try watch(bus, lane, as: Self.user, rendition)
            // By trying it has asked; it was at the door, and was not let in.
            try await isAsked(bus, Self.user)
            try read(witness, 5)
            #expect(lines(stranger, "frame").isEmpty && lines(stranger, "in").isEmpty)

            try await allow(bus, Self.user)
            try await eventually { lines(stranger, "frame").count > 5 }

            var sequences: [Int64] = []
            var streams: [String] = []
            func keep(_ frame: FrameReader.Frame) {
                if streams.last != frame.stream { (streams, sequences) = (streams + [frame.stream], []) }
                // Within a stream nothing is missing.
                if let last = sequences.last { #expect(frame.sequence == last + 1) }
                sequences.append(frame.sequence)
            }
            try read(witness, 3, keep)
            try await deny(bus, Self.user)
            try await eventually { lines(stranger, "out").count == 1 }
            let count = lines(stranger, "frame").count
            try read(witness, 15, keep)
            #expect(lines(stranger, "frame").count == count, "\(stranger.standardOutput)")
            #expect(lines(stranger, "in").count == 1)
            #expect(lines(stranger, "written").isEmpty)
            // Only where it had the very memory that the camera writes to, that had to be another.
            #expect(streams.count == (lane == .ring && rendition == "native" ? 2 : 1))

            // Allowed again, it comes in by itself, and no connection of it was given up.
            try await allow(bus, Self.user)
            try await eventually { lines(stranger, "frame").count > count + 5 }
            #expect(lines(stranger, "written").isEmpty)
            #expect(stranger.standardError == "")
            try await bus.stop()
        }

        @Test func `who may read a ring goes on in another when somebody else has to leave it`() async throws {
            let bus = try await bus()
            let other = OtherUser.second
            try await allow(bus, Self.user)
            try await allow(bus, other)
            for rendition in ["gray:320x0", "native"] {
                let loser = try watch(bus, .ring, as: Self.user, rendition)
                let keeper = try watch(bus, .ring, as: other, rendition)
                try await eventually { lines(loser, "frame").count > 3 && lines(keeper, "frame").count > 3 }
                let shared = try #require(lines(keeper, "ring").last)
                #expect(lines(loser, "ring").last == shared)
                try await deny(bus, Self.user)
                try await eventually { lines(keeper, "ring").count == 2 && lines(loser, "out").count == 1 }
                let count = lines(keeper, "frame").count
                try await eventually { lines(keeper, "frame").count > count + 5 }
                #expect(lines(keeper, "out").isEmpty && lines(keeper, "ring").last != shared)
                #expect(lines(loser, "written").isEmpty)
                try await allow(bus, Self.user)
                for program in [loser, keeper] {
                    program.process.send(SIGKILL)
                    _ = try await program.end()
                }
            }
            try await bus.stop()
        }

        @Test func `who left a ring before its permission was taken back reads nothing new in it`() async throws {
            let bus = try await bus()
            try await allow(bus, Self.user)
            // Its memory is mapped still, when its connection has ended.
            let script = """
                import array, json, mmap, os, socket, struct, sys, time
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                connection.connect(sys.argv[1] + "/media/cam0.ring")
                connection.send(b'{}')
                data, ancillary, _, _ = connection.recvmsg(65536, 64)
                descriptor = array.array("i", ancillary[0][2])[0]
                memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size, prot=mmap.PROT_READ)
                connection.close()
                print("mapped", flush=True)
                while True:
                    count, newest, closed = struct.unpack_from("<III", memory, 384)
                    print("count", count, closed, flush=True)
                    time.sleep(0.02)
                """
            let witness = try FrameReader(bus, "cam0", Self.witnessed)
            let stranger = try bus.start(OtherUser.python, ["-c", script, bus.directory.path], as: Self.user)
            try await eventually { lines(stranger, "count").count > 3 }
            try await deny(bus, Self.user)
            try await eventually { lines(stranger, "count").last?.hasSuffix(" 0") == false }
            let last = lines(stranger, "count").last
            try read(witness, 10)
            #expect(lines(stranger, "count").last == last)
            try await bus.stop()
        }

        @Test func `the door of the rings says why it is closed, and hands out nothing`() async throws {
            let bus = try await bus()
            let script = """
                import json, socket, sys
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                connection.connect(sys.argv[1] + "/media/cam0.ring")
                data, ancillary, _, _ = connection.recvmsg(65536, 64)
                print(json.loads(data)["error"]["reason"], len(ancillary), connection.recv(10))
                """
            let result = try await bus.run(OtherUser.python, ["-c", script, bus.directory.path], as: Self.user)
            #expect(result.standardOutput == "unauthorized 0 b''\n", "\(result)")
            try await isAsked(bus, Self.user)
            try await bus.stop()
        }

        // MARK: Commands

        @Test func `permission for sound is none for cameras, whatever they are named by`() async throws {
            let bus = try await bus()
            _ = try call(bus, "rig.set", ["name": "desk", "devices": ["cam0"]])
            let granted = try await bus.run("camerabus", ["allow", "\(Self.user.uid)", "audio"])
            try #require(granted.status == 0, "\(granted)")
            for arguments in [
                ["lock", "desk", "--", "true"], ["rigs", "delete", "desk"],
                ["rigs", "set", "other", "cam0"], ["profiles", "save", "day", "cam0"],
            ] {
                let result = try await bus.run("camerabus", arguments, as: Self.user)
                #expect(result.status == 1, "\(arguments): \(result)")
                #expect(result.standardError.contains("unauthorized"), "\(arguments): \(result)")
            }
            try await bus.stop()
        }

        @Test func `a session ends when its user may not use the camera any more`() async throws {
            let bus = try await bus()
            try await allow(bus, Self.user)
            let made = try await bus.run("camerabus", ["session", "create", "cam0", "--start"], as: Self.user)
            try #require(made.status == 0, "\(made)")
            let session = try #require(try call(bus, "session.list")["sessions"]?.array?.first?["id"]?.string)
            try await bus.wait(for: "state/session/\(session)/") { $0?["state"] == "running" }
            try await deny(bus, Self.user)
            try await bus.wait(for: "state/session/\(session)/") {
                $0?["state"] == "stopped" && $0?["error"]?["reason"] == "unauthorized"
            }
            try await bus.wait(for: "state/device/cam0/") { $0?["isStreaming"] == false }
            try await bus.stop()
        }

        @Test func `without permission a command changes nothing and says what to type; reading goes on`() async throws
        {
            let bus = try await bus()
            // Before its worker has looked at it nothing is known of a camera.
            let before = try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["brightness"] != nil }?[
                "controls"]
            for arguments in [
                ["set", "cam0", "brightness=17"], ["lock", "cam0", "--", "true"], ["name", "cam0", "mine"],
                ["lock", "cam0", "--", "camerabus", "format", "cam0", "640x480"],
            ] {
                let result = try await bus.run("camerabus", arguments, as: Self.user)
                #expect(result.status == 1, "\(arguments): \(result)")
                #expect(result.standardError.contains("unauthorized"), "\(arguments): \(result)")
                #expect(
                    result.standardError.contains("camerabus allow \(Self.user.uid) video"), "\(arguments): \(result)")
            }
            for arguments in [["devices"], ["status"], ["controls", "cam0"], ["locks"], ["who", "cam0"]] {
                let result = try await bus.run("camerabus", arguments, as: Self.user)
                #expect(result.status == 0, "\(arguments): \(result)")
            }
            #expect(try call(bus, "device.get", ["device": "cam0"])["device"]?["controls"] == before)
            // Nothing was asked: who changes things says so by a request.
            #expect(try call(bus, "authorization.list")["requests"] == [])
            try await allow(bus, Self.user)
            let result = try await bus.run("camerabus", ["set", "cam0", "brightness=17"], as: Self.user)
            #expect(result.status == 0, "\(result)")
            try await bus.stop()
        }

        @Test func `only administrators decide, and nobody for those whom the configuration decides about`()
            async throws
        {
            let configuration =
                OtherUser.configuration + "[permission.users]\n\(OtherUser.second.uid) = \"control\"\n"
            let bus = try await BusHarness(virtual: 1, configuration: configuration)
            for arguments in [["allow", "\(Self.user.uid)"], ["deny", "0"], ["permissions", "--reset", "0"]] {
                for user in [Self.user, OtherUser.second] {
                    let result = try await bus.run("camerabus", arguments, as: user)
                    #expect(result.status == 1 && result.standardError.contains("administrators"), "\(result)")
                }
            }
            for uid in ["0", "\(OtherUser.second.uid)"] {
                let result = try await bus.run("camerabus", ["deny", uid, "video"])
                #expect(result.status == 1 && result.standardError.contains("invalidParams"), "\(result)")
            }
            let result = try await bus.run("camerabus", ["set", "cam0", "brightness=17"], as: OtherUser.second)
            #expect(result.status == 0, "\(result)")
            try await bus.stop()
        }

        @Test func `roles look, are kept out, or rule, and a reload changes them at once`() async throws {
            func configuration(_ role: String) -> String {
                OtherUser.configuration + "[permission.groups]\n\(Self.user.gid) = \"\(role)\"\n"
                    + "[permission.users]\nnobody-of-that-name = \"view\"\n"
            }
            let bus = try await BusHarness(virtual: 1, configuration: configuration("view"))
            #expect(try bus.problems() == ["userUnknown"])
            let stranger = try watch(bus, .frame, as: Self.user, "native")
            try await eventually { lines(stranger, "frame").count > 3 }
            let refused = try await bus.run("camerabus", ["set", "cam0", "brightness=17"], as: Self.user)
            #expect(refused.status == 1 && refused.standardError.contains("view"), "\(refused)")

            try bus.write(configuration("none"), to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually { lines(stranger, "out").count == 1 }
            let status = try await bus.run("camerabus", ["ask", "video", "--reason", "please"], as: Self.user)
            #expect(status.status == 1 && status.standardOutput == "restricted\n", "\(status)")
            #expect(try call(bus, "authorization.list")["requests"] == [])

            try bus.write(configuration("admin"), to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually { lines(stranger, "in").count == 2 }
            try await eventually {
                try await bus.run("camerabus", ["allow", "\(OtherUser.second.uid + 1)", "video"], as: Self.user).status
                    == 0
            }
            try await bus.stop()
        }

        @Test func `locks of a user whose permission is taken back end`() async throws {
            let bus = try await bus()
            try await allow(bus, Self.user)
            let holder = try bus.start("camerabus", ["lock", "cam0"], as: Self.user)
            try await bus.wait(for: "state/device/cam0/") { $0?["lock"]?["id"] != nil }
            try await deny(bus, Self.user)
            try await bus.wait(for: "state/device/cam0/") { $0?["lock"] == .null }
            #expect(try await holder.end().status == 1)
            try await bus.stop()
        }

        // MARK: Asking

        @Test func `a request waits for its answer, and is told to administrators with its reason`() async throws {
            let bus = try await bus()
            let asking = try bus.start(
                "camerabus", ["ask", "video", "--reason", "measure the belt", "--wait", "60"], as: Self.user)
            try await isAsked(bus, Self.user)
            let request = try #require(try call(bus, "authorization.list")["requests"]?[0])
            #expect(request["reason"] == "measure the belt" && request["media"] == "video")
            #expect(request["uid"]?.integer == Int64(Self.user.uid))
            #expect(request["pid"]?.integer == Int64(asking.process.pid))
            // What is asked for with which words is for administrators.
            let state = try call(bus, "bus.snapshot", ["prefix": "state/authorization/"]).description
            #expect(!state.contains("measure"))
            let list = try await bus.run("camerabus", ["permissions"])
            #expect(list.standardOutput.contains("measure the belt"), "\(list)")
            try await allow(bus, Self.user)
            let result = try await asking.end()
            #expect(result.status == 0 && result.standardOutput == "authorized\n", "\(result)")
            try await deny(bus, Self.user)
            let again = try await bus.run(
                "camerabus", ["ask", "video", "--reason", "again", "--wait", "60"], as: Self.user)
            #expect(again.status == 1 && again.standardOutput == "denied\n", "\(again)")
            #expect(try call(bus, "authorization.list")["requests"] == [])
            let reset = try await bus.run("camerabus", ["permissions", "--reset", "\(Self.user.uid)"])
            #expect(reset.status == 0, "\(reset)")
            let later = try await bus.run("camerabus", ["ask", "video", "--reason", "again"], as: Self.user)
            #expect(later.status == 4 && later.standardOutput == "notDetermined\n", "\(later)")
            try await bus.stop()
        }

        @Test func `a request without a reason is none, and one that waits can be given up`() async throws {
            let bus = try await bus()
            for reason in ["", "  ", "two\\nlines", "\\u001b[2J"] {
                let params = "{\"media\":\"video\",\"reason\":\"\(reason)\"}"
                let result = try await bus.run(
                    "camerabus", ["call", "authorization.request", params], as: Self.user)
                #expect(result.status == 1 && result.standardError.contains("invalidParams"), "\(result)")
            }
            let script = """
                import sys
                from camerabus import Client, CaptureError
                client = Client()
                import threading
                def wait():
                    try:
                        Client().call("authorization.request", {"media": "video", "reason": "x", "wait": 60000}, 70, key="k1")
                    except CaptureError as error:
                        print(error.reason)
                thread = threading.Thread(target=wait)
                thread.start()
                while not client.call("bus.cancel", {"key": "k1"})["cancelled"]:
                    pass
                thread.join()
                """
            let result = try await bus.run(
                OtherUser.python, ["-c", script], as: Self.user, environment: ["PYTHONPATH": Programs.pythonPath])
            #expect(result.standardOutput == "cancelled\n", "\(result)")
            #expect(try call(bus, "authorization.list")["requests"] == [])
            try await bus.stop()
        }

        @Test func `the command line says why no frames come, and they come when it is allowed`() async throws {
            let bus = try await bus()
            let frames = try bus.start(
                "camerabus", ["frames", "cam0", "native", "-n", "3", "--timeout", "60"], as: Self.user)
            try await eventually { frames.standardError.contains("camerabus allow \(Self.user.uid) video") }
            try await isAsked(bus, Self.user)
            try await allow(bus, Self.user)
            let result = try await frames.end()
            #expect(result.status == 0, "\(result)")
            try await deny(bus, Self.user)
            let refused = try await bus.run("camerabus", ["frames", "cam0"], as: Self.user)
            #expect(refused.status == 1 && refused.standardError.contains("unauthorized"), "\(refused)")
            try await bus.stop()
        }

        // MARK: What lasts

        @Test func `what was decided holds without a coordinator, with the next one, and in new workers`() async throws
        {
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

        @Test func `what is allowed once ends when the user has left the bus`() async throws {
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
}
