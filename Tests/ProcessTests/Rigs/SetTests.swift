import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Frames of several cameras that were taken at the same time.
    @Suite(.timeLimit(.minutes(5))) struct Sets {
        private struct Name: Hashable {
            var device: String
            var stream: String
            var number: UInt64
        }

        /// Holds what comes against what was promised.
        private struct Checker {
            let devices: [String]
            private var given: Set<Name> = []
            /// The last message, and the last set.
            private var before: FrameSetHeader?
            private var last: FrameSetHeader?
            private(set) var whole = 0
            private(set) var missing: [String: Int] = [:]

            init(_ devices: [String]) { self.devices = devices }

            mutating func check(_ set: FrameSet) {
                let header = set.header
                for frame in set.frames {
                    let name = Name(
                        device: frame.header.device, stream: frame.header.stream, number: frame.header.captureSequence)
                    #expect(given.insert(name).inserted, "\(name) is in two sets")
                }
                for part in header.parts {
                    guard let frame = part.frame else { continue }
                    #expect(part.offset == frame.monotonic - header.monotonic)
                    #expect(abs(part.offset) <= header.tolerance, "\(part)")
                    #expect(frame.device == part.device)
                }
                if let before, before.stream == header.stream {
                    #expect(header.sequence == before.sequence + 1 + set.lost)
                }
                before = header
                guard !header.isLate else { return }
                #expect(header.parts.map(\.device) == devices)
                #expect(header.parts.first?.offset == 0)
                let times = set.frames.map(\.header.monotonic)
                #expect(header.spread == (times.max() ?? 0) - (times.min() ?? 0))
                if let last, last.stream == header.stream {
                    #expect(header.monotonic > last.monotonic && header.number > last.number)
                }
                last = header
                if set.frames.count == devices.count { whole += 1 }
                for part in header.parts where part.frame == nil { missing[part.device, default: 0] += 1 }
            }
        }

        @Test func `three cameras in matched sets, as long as somebody wants them`() async throws {
            let bus = try await BusHarness(virtual: 3)
            let client = try await bus.connect()
            _ = try await client.setRig("desk", devices: ["cam0", "cam2", "cam1"])
            let sets = try await client.frameSets("desk", "gray:64x0", newest: 64)
            var checker = Checker(["cam0", "cam2", "cam1"])
            try await Deadline.usual.limit("sets") { [checker] in
                var checker = checker
                while checker.whole < 20 { checker.check(try await sets.next()) }
            }
            checker.check(try await sets.next())
            for device in ["cam0", "cam1", "cam2"] {
                try await bus.wait(for: "state/device/\(device)/") { $0?["isStreaming"] == true }
            }
            sets.close()
            for device in ["cam0", "cam1", "cam2"] {
                try await bus.wait(for: "state/device/\(device)/") { $0?["isOpen"] == false }
            }
            await client.close()
            try await bus.stop()
        }

        @Test func `a slower camera is in every other set, and one that stalls in none, and the sets continue`()
            async throws
        {
            let bus = try await BusHarness(virtual: 3)
            let client = try await bus.connect()
            let raw = try RawClient(path: bus.directory.commandSocket)
            _ = try await client.setRig("desk", devices: ["cam0", "cam1", "cam2"])
            let lock = try raw.call("device.lock", ["devices": "desk"])["lock"] ?? .null
            try raw.call(
                "device.configure",
                [
                    "lock": lock,
                    "changes": [
                        ["device": "cam0", "frameRate": 30], ["device": "cam1", "frameRate": 15],
                        ["device": "cam2", "frameRate": 30],
                    ],
                ])
            try raw.call("device.unlock", ["lock": lock])
            let sets = try await client.frameSets("desk", "gray:64x0", newest: 64)
            try await Deadline.after(seconds: 60).limit("sets without the slower camera") {
                var checker = Checker(["cam0", "cam1", "cam2"])
                // Cameras begin one after the other.
                while checker.whole == 0 { checker.check(try await sets.next()) }
                let before = checker.missing
                func missing(_ device: String) -> Int {
                    checker.missing[device, default: 0] - before[device, default: 0]
                }
                // On a machine that has much to do the others lose some as well.
                while checker.whole < 10 || missing("cam1") < 10 || missing("cam1") <= missing("cam2") {
                    checker.check(try await sets.next())
                }
            }

            try raw.call("fault.inject", ["device": "cam2", "fault": "stall", "milliseconds": 5000])
            try await Deadline.usual.limit("sets without cam2, then with it") {
                var checker = Checker(["cam0", "cam1", "cam2"])
                var without = 0
                while without < 10 {
                    let set = try await sets.next()
                    checker.check(set)
                    without = set.header.parts.last?.frame == nil ? without + 1 : 0
                }
                let before = checker.whole
                while checker.whole < before + 3 { checker.check(try await sets.next()) }
            }
            await client.close()
            try await bus.stop()
        }

        @Test func `a frame that is too late for its set is published alone, marked late`() async throws {
            let bus = try await BusHarness(virtual: 3)
            let client = try await bus.connect()
            _ = try await client.setRig("desk", devices: ["cam0", "cam1", "cam2"], tolerance: .milliseconds(20))
            let sets = try await client.frameSets("desk", "gray:64x0", newest: 64)
            let worker = try #require(try bus.workerPID("cam2"))
            defer { kill(worker, SIGCONT) }
            try await Deadline.usual.limit("a late frame") {
                var checker = Checker(["cam0", "cam1", "cam2"])
                /// When the sets without a frame of cam2, which may come yet, were taken.
                var open: [UInt64: Int64] = [:]
                /// Whether it is such a set.
                func lacks(_ set: FrameSet) -> Bool {
                    checker.check(set)
                    guard !set.header.isLate, let part = set.header.parts.last, part.frame == nil else { return false }
                    open[set.header.number] = set.header.monotonic
                    return true
                }
                while checker.whole == 0 { _ = lacks(try await sets.next()) }
                var late: FrameSetHeader?
                while late == nil {
                    // Its camera goes on meanwhile, and its pictures say when they were taken.
                    kill(worker, SIGSTOP)
                    var without = 0
                    while without < 4 {
                        let set = try await sets.next()
                        guard lacks(set) else { continue }
                        #expect(set.header.tolerance == 20_000_000 && set.header.parts.count == 3)
                        without += 1
                    }
                    kill(worker, SIGCONT)
                    let whole = checker.whole
                    while late == nil, checker.whole < whole + 5 {
                        let set = try await sets.next()
                        guard !lacks(set), set.header.isLate else { continue }
                        // On a machine that has much to do others may be late as well, and its set may have been lost.
                        guard set.header.parts.first?.device == "cam2", open[set.header.number] != nil else { continue }
                        late = set.header
                    }
                }
                let header = try #require(late)
                #expect(header.parts.map(\.device) == ["cam2"] && header.tolerance == 20_000_000)
                #expect(open[header.number] == header.monotonic)
                let frame = try #require(header.parts[0].frame)
                #expect(header.spread == abs(frame.monotonic - header.monotonic) && header.spread <= 20_000_000)
            }
            await client.close()
            try await bus.stop()
        }

        @Test func `a camera whose clock drifts is matched with ever other frames, and never mixed`() async throws {
            let bus = try await BusHarness(virtual: 3)
            let client = try await bus.connect()
            let raw = try RawClient(path: bus.directory.commandSocket)
            _ = try await client.setRig("desk", devices: ["cam0", "cam1", "cam2"])
            // A frame of the third comes one interval late after a second and a half.
            try raw.call("fault.inject", ["device": "cam2", "fault": "drift", "partsPerMillion": 20_000])
            let sets = try await client.frameSets("desk", "gray:64x0", newest: 64)
            try await Deadline.usual.limit("sets from one end of the tolerance to the other") {
                var checker = Checker(["cam0", "cam1", "cam2"])
                var (earliest, latest) = (Int64.max, Int64.min)
                while checker.whole < 40 || latest - earliest < 20_000_000 {
                    let set = try await sets.next()
                    checker.check(set)
                    guard !set.header.isLate, let drifting = set.header.parts.last, drifting.frame != nil else {
                        continue
                    }
                    earliest = min(earliest, drifting.offset)
                    latest = max(latest, drifting.offset)
                    // The spread tells how far apart the pictures are.
                    #expect(set.header.spread >= abs(drifting.offset))
                }
            }
            await client.close()
            try await bus.stop()
        }

        @Test func `sets go on over the death of the coordinator, and follow workers and the rig`() async throws {
            let bus = try await BusHarness(virtual: 3)
            let client = try await bus.connect()
            _ = try await client.setRig("desk", devices: ["cam0", "cam1"])
            let sets = try await client.frameSets("desk", "gray:64x0", newest: 64)
            let stream = try await Deadline.usual.limit("a set") { try await sets.next().header.stream }
            try await bus.killCoordinator()
            try await Deadline.usual.limit("sets without a coordinator") {
                var checker = Checker(["cam0", "cam1"])
                while checker.whole < 10 {
                    let set = try await sets.next()
                    #expect(set.header.stream == stream)
                    checker.check(set)
                }
            }
            try await bus.startCoordinator()
            try await bus.wait(for: "state/rig/desk/") { $0?["complete"] == true }
            #expect(try await Deadline.usual.limit("a set") { try await sets.next().header.stream } == stream)

            // The lead's worker dies: it is back with a new stream, and the sets with it.
            let old = try await Deadline.usual.limit("a set") { try await sets.next().frames[0].header.stream }
            kill(try #require(try bus.workerPID("cam0")), SIGKILL)
            try await Deadline.usual.limit("sets with the lead's new stream") {
                while true {
                    do throws(ClientError) {
                        let set = try await sets.next()
                        if set.frames.count == 2, set.frames[0].header.stream != old { return }
                    } catch {
                        guard error.reason != nil else { throw error }
                    }
                }
            }

            // Another device leads: that is another stream of sets.
            let again = try await bus.connect()
            _ = try await again.setRig("desk", devices: ["cam2", "cam0"])
            try await Deadline.usual.limit("sets of the other devices") {
                while true {
                    let set = try await sets.next()
                    guard set.header.parts.map(\.device) == ["cam2", "cam0"] else { continue }
                    #expect(set.header.stream != stream)
                    return
                }
            }
            // And its end is the end of its matcher.
            try await again.deleteRig("desk")
            try await eventually { access(bus.directory.mediaSocket("desk"), F_OK) != 0 }
            await again.close()
            await client.close()
            try await bus.stop()
        }

        @Test func `a matcher that dies costs its own sets a moment`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try await bus.connect()
            _ = try await client.setRig("desk", devices: ["cam0", "cam1"])
            _ = try await client.setRig("other", devices: ["cam1", "cam0"])
            let sets = try await client.frameSets("desk", "gray:64x0", newest: 64)
            let others = try await client.frameSets("other", "gray:64x0", newest: 1024)
            let stream = try await Deadline.usual.limit("a set") { try await sets.next().header.stream }
            let first = try await Deadline.usual.limit("a set of the other") { try await others.next().header.stream }
            guard case .somebody(let matcher?) = LockFile.holder(of: bus.directory.matcherLock("desk")) else {
                throw TestingError("The rig has no matcher.")
            }
            matcher.send(SIGKILL)
            try await Deadline.usual.limit("sets of another matcher") {
                while try await sets.next().header.stream == stream {}
            }
            try await Deadline.usual.limit("sets of the other rig") {
                for _ in 0..<5 {
                    let stream = try await others.next().header.stream
                    #expect(stream == first)
                }
            }
            await client.close()
            try await bus.stop()
        }

        private func message(_ client: RawClient) throws -> JSONValue {
            let frames = try client.receive()
            return try JSONValue(parsing: try #require(frames.dropFirst().first).bytes)
        }

        @Test func `what can't be had is told on the topic, and a rig that is none by name`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try await bus.connect()
            await #expect(throws: ClientError.self) { _ = try await client.frameSets("desk") }
            _ = try await client.setRig("desk", devices: ["cam0", "cam1"])
            for rendition in ["jpeg;q=0", "nothing", "jpeg:8000x8000"] {
                let sets = try await client.frameSets("desk", rendition)
                let reason = try await Deadline.usual.limit("why there are none") {
                    while true {
                        do throws(ClientError) { _ = try await sets.next() } catch { return error.reason }
                    }
                }
                #expect(reason == (rendition == "jpeg:8000x8000" ? .formatUnsupported : .invalidParams))
            }
            // The door of a rig is for sets, and that of a camera isn't.
            let wrong = try RawClient(.subscribe, path: bus.directory.mediaSocket("desk"))
            try wrong.socket.subscribe("frame/desk/native/")
            #expect(try message(wrong)["error"]?["reason"] == "formatUnsupported")
            let camera = try RawClient(.subscribe, path: bus.directory.mediaSocket("cam0"))
            try camera.socket.subscribe("set/cam0/native/")
            #expect(try message(camera)["error"]?["reason"] == "formatUnsupported")
            await client.close()
            try await bus.stop()
        }

        @Test func `the command line makes rigs and profiles, and receives sets`() async throws {
            let bus = try await BusHarness(virtual: 2)
            func run(_ arguments: String...) async throws -> (status: Int32, lines: [String], errors: String) {
                let result = try await bus.run("camerabus", arguments)
                let lines = result.standardOutput.split(separator: "\n").map(String.init)
                return (result.status, lines, result.standardError)
            }
            #expect(try await run("rigs").errors.contains("no rigs"))
            let made = try await run("rigs", "set", "desk", "cam1", "cam0", "--tolerance", "12.5")
            #expect(made.status == 0 && made.lines.last?.contains("cam1, cam0") == true, "\(made)")
            #expect(made.lines.last?.contains("12.5 ms") == true && made.lines.last?.contains("complete") == true)
            #expect(try await run("rigs", "list", "--names").lines == ["desk"])
            #expect(try await run("rigs", "set", "cam0", "cam1").status == 1)
            let locked = try await run(
                "lock", "desk", "--", "sh", "-c", "camerabus lock desk -- echo joined; camerabus locks")
            #expect(locked.status == 0 && locked.lines.first == "joined", "\(locked)")
            #expect(locked.lines.contains { $0.hasPrefix("cam1, cam0") })

            let sets = try await run("frames", "desk", "gray:64x0", "--set", "-n", "3")
            #expect(sets.status == 0 && sets.lines.count >= 4, "\(sets)")
            #expect(sets.lines.dropFirst().allSatisfy { $0.contains("cam1 ") })
            let json = try await run("frames", "desk", "gray:64x0", "--set", "-n", "2", "--json")
            #expect(try json.lines.map { try JSONValue(parsing: $0) }.allSatisfy { $0["set"] == "desk" })
            let pattern = "\(bus.scratchPath)/%s-%02d.gray"
            let files = try await run("frames", "desk", "gray:64x0", "--set", "-n", "5", "-o", pattern)
            #expect(files.status == 0 && access("\(bus.scratchPath)/cam1-01.gray", F_OK) == 0, "\(files)")
            #expect(try await run("frames", "desk", "--set", "-o", "f-%d").status == 2)
            #expect(try await run("frames", "nobody", "--set").errors.hasPrefix("rigNotFound"))

            #expect(try await run("set", "cam0", "brightness=11").status == 0)
            let saved = try await run("profiles", "save", "eleven", "desk")
            #expect(saved.status == 0 && saved.lines.count == 3 && saved.lines[1].hasPrefix("eleven"), "\(saved)")
            #expect(try await run("set", "cam0", "brightness=2").status == 0)
            let applied = try await run("profiles", "apply", "eleven")
            #expect(applied.status == 0 && applied.lines.count == 2, "\(applied)")
            #expect(try await run("get", "cam0", "brightness").lines.joined().contains("11"))
            #expect(
                try await run("profiles", "apply", "eleven", "cam0", "--nearest", "--dry-run").lines.first?.hasPrefix(
                    "would be cam0") == true)
            #expect(try await run("profiles", "--json").lines.joined().contains("virtual-1"))
            #expect(try await run("profiles", "delete", "eleven").status == 0)
            #expect(try await run("profiles", "apply", "eleven").errors.hasPrefix("profileNotFound"))
            #expect(try await run("rigs", "delete", "desk").status == 0)
            try await bus.stop()
        }
    }
}
