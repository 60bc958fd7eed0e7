import BusClient
import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// The coordinator is killed at random moments, many times, under clients that use it all the while.
    @Suite(.timeLimit(.minutes(60))) struct Kills {
        /// `CAMERABUS_KILLS`: how often, instead of 200. `CAMERABUS_KILL_SEED`: the choices of an earlier run.
        private static let kills = CurrentProcess.environment("CAMERABUS_KILLS").flatMap { Int($0) } ?? 200
        private static let seed =
            CurrentProcess.environment("CAMERABUS_KILL_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: 1...999_999)
        private static let cameras = ["cam0", "cam1", "cam2", "cam3"]

        @Test func `a coordinator that is killed again and again breaks no promise`() async throws {
            let bus = try await BusHarness(virtual: 4)
            var dice = Dice(seed: Self.seed)
            let recorder = KillRecorder()
            try await prepare(bus)
            let stalls = try StallWatcher(recorder)
            let watcher = try await FrameWatcher(bus, Self.cameras, recorder)
            let clients = try await start(bus, recorder)
            let python = try bus.start(
                Programs.python, ["-c", Self.pythonClient, bus.directory.path, "\(Self.seed)"],
                environment: ["PYTHONPATH": Programs.pythonPath])
            let began = MonotonicClock.now()
            var holders: [RunningProgram] = []
            var isReady = true
            for number in 0..<Self.kills {
                if number % 12 == 3 {
                    // One that is killed while it waits, or holds, or while nobody is there to see it.
                    holders.append(try bus.start("camerabus", ["lock", "cam2", "--json", "--wait", "30"]))
                }
                if number % 12 == 9 { killHolders(&holders, recorder) }
                // Half of them in the midst of its start; the others get to work, however slow the machine.
                try await Task.sleep(for: dice.milliseconds(isReady ? 0...380 : 0...120))
                if let epoch = try? Self.epoch(bus, within: isReady ? 5 : 0.05) {
                    recorder.record { $0.epochs.append(epoch) }
                }
                try await bus.killCoordinator()
                isReady = dice.chance(50) || number == Self.kills - 1
                try await bus.startCoordinator(waits: isReady)
            }
            let seconds = Double(MonotonicClock.now() - began) / 1e9
            killHolders(&holders, recorder)
            recorder.stop()
            python.process.send(15)
            for client in clients { await client.value }
            watcher.join()
            stalls.join()
            Self.read(try await python.end().standardOutput, into: recorder)
            try await readAtEnd(bus, recorder)
            report(recorder.written, seconds)
            try await bus.stop()
        }

        private func prepare(_ bus: BusHarness) async throws {
            let client = try await bus.connect(name: "the test")
            try await client.withLock(Self.cameras) { lock in
                let format: JSONValue = ["pixelFormat": "GREY", "width": 160, "height": 120]
                let controls: JSONValue = ["auto_exposure": 1, "saturation": 0]
                let changes = Self.cameras.map { device in
                    JSONValue.object([
                        "device": .string(device), "activeFormat": format, "frameRate": 5, "controls": controls,
                    ])
                }
                _ = try await client.configure(changes, lock: lock.token)
            }
            await client.close()
        }

        private func start(_ bus: BusHarness, _ recorder: KillRecorder) async throws -> [Task<Void, Never>] {
            var tasks: [Task<Void, Never>] = []
            func add(_ name: String, _ body: @escaping @Sendable (inout KillClient) async -> Void) async throws {
                let made = try await KillClient(
                    name, bus, recorder, seed: Self.seed &+ UInt64(tasks.count) &* 7919)
                tasks.append(
                    Task {
                        var client = made
                        await body(&client)
                        await client.client.close()
                    })
            }
            try await add("one holder") { await $0.holdOn(to: "cam3") }
            try await add("an intruder") { await $0.intrude(on: "cam3") }
            try await add("a lease") { await $0.lease("cam2") }
            try await add("a") { await $0.contend(for: [["cam0"], ["cam1"], ["cam0", "cam1"]]) }
            try await add("b") { await $0.contend(for: [["cam1", "cam0"], ["cam1"]]) }
            try await add("c") { await $0.contend(for: [["cam0"], ["cam2"], ["cam0", "cam1"]]) }
            return tasks
        }

        // Their locks end with them, also when no coordinator is there to see it.
        private func killHolders(_ holders: inout [RunningProgram], _ recorder: KillRecorder) {
            for holder in holders {
                let until = MonotonicClock.now()
                let line = holder.standardOutput
                holder.process.send(9)
                guard let value = Self.json(line), let token = value["lock"]?.string,
                    let fence = value["fence"]?.integer
                else { continue }
                recorder.record {
                    $0.holds.append(
                        // When it was asked for, and had, nobody wrote down: it is only held at its end.
                        .init(
                            client: "a killed process", devices: ["cam2"], token: token, fence: UInt64(max(0, fence)),
                            asked: 0, from: until - 1, until: until))
                }
            }
            holders = []
        }

        private static func json(_ text: some StringProtocol) -> JSONValue? {
            Array(text.utf8).withUnsafeBytes { try? JSONValue(parsing: $0) }
        }

        private static func epoch(_ bus: BusHarness, within seconds: Double) throws -> String? {
            try RawClient(path: bus.directory.commandSocket).call("bus.hello", ["client": "epochs"], within: seconds)[
                "epoch"]?.string
        }

        private func readAtEnd(_ bus: BusHarness, _ recorder: KillRecorder) async throws {
            let client = try await KillClient("the end", bus, recorder, seed: 0)
            try await eventually {
                let devices = try await client.client.devices()
                return devices.allSatisfy { $0["worker"]?["state"] == "running" && $0["lock"] == .null }
            }
            await client.readAtEnd(Self.cameras)
            await client.client.close()
        }

        private func report(_ history: KillHistory, _ seconds: Double) {
            let violations = KillChecker.violations(history)
            let answered = history.commits.filter { $0.answered != nil }.count
            print(
                "kill test: \(Self.kills) kills in \(Int(seconds)) s (seed \(Self.seed)), \(violations.count) "
                    + "violations; "
                    + "\(history.holds.count) locks, \(answered) changes acknowledged, "
                    + "\(history.commits.count - answered) left in doubt, \(history.readings.count) readings, "
                    + "\(history.pairs.count) pairs, \(history.frames.count) frames, "
                    + "\(history.epochs.count) epochs seen; the machine stood still \(history.stalls.count) times, "
                    + "\((history.stalls.map { $0.until - $0.from }.max() ?? 0) / 1_000_000) ms at most, which cost "
                    + "\(KillChecker.excusedLosses(history)) gaps")
            for violation in violations.prefix(20) { print("kill test: \(violation)") }
            #expect(violations.isEmpty, "\(violations.count) violations, seed \(Self.seed): \(violations.prefix(5))")
            // Else nothing was tried.
            #expect(history.holds.count > Self.kills / 4 && answered > Self.kills / 4)
            #expect(
                history.frames.count > Self.kills && !history.pairs.isEmpty && history.epochs.count > Self.kills / 4)
        }

        // MARK: A client in another language, and another process

        private static let pythonClient = """
            import json, random, signal, sys, time
            from camerabus import Client, BusGone, CaptureError, LockLost, LockTimeout
            over = False
            def stop(*_):
                global over
                over = True
            signal.signal(signal.SIGTERM, stop)
            dice, now, out = random.Random(int(sys.argv[2])), time.monotonic_ns, []
            value = 0
            with Client(sys.argv[1], name="python") as client:
                while not over:
                    devices = dice.choice([["cam0"], ["cam1"], ["cam1", "cam0"]])
                    asked = now()
                    try:
                        # Each bus lets wait anew, and who comes back to it last is served last.
                        lock = client.lock(*devices, wait=10, timeout=600)
                    except LockTimeout:
                        out.append({"vain": devices, "asked": asked, "answered": now()})
                        continue
                    except CaptureError as error:
                        out.append({"surprise": f"python, lock: {error!r}"})
                        continue
                    begun = now()
                    for _ in range(dice.randrange(3)):
                        value = value % 5000 + 1
                        controls = {"exposure_time_absolute": value}
                        if len(devices) > 1:
                            controls["saturation"] = value % 129
                        sent = now()
                        entry = {"commit": devices, "value": value, "sent": sent, "token": lock.token}
                        try:
                            done = client.configure([{"device": d, "controls": controls} for d in devices], lock=lock)
                            entry |= {"answered": now(), "generation": dict(done.generation)}
                        except LockLost:
                            entry |= {"lost": now()}
                        except BusGone:
                            pass
                        except CaptureError as error:
                            out.append({"surprise": f"python, configure: {error!r}"})
                        out.append(entry)
                        time.sleep(dice.random() * 0.03)
                    until, token = now(), lock.token
                    out.append({"hold": devices, "token": token, "fence": lock.fence, "asked": asked, "from": begun, "until": until})
                    try:
                        lock.release(timeout=600)
                    except CaptureError as error:
                        out.append({"surprise": f"python, release: {error!r}"})
                    time.sleep(dice.random() * 0.03)
            for entry in out:
                print(json.dumps(entry))
            """

        private static func read(_ lines: String, into recorder: KillRecorder) {
            for line in lines.split(separator: "\n") {
                guard let entry = json(line) else { continue }
                func time(_ name: String) -> Int64 { entry[name]?.integer ?? 0 }
                func devices(_ name: String) -> [String]? { entry[name]?.array?.compactMap(\.string) }
                let token = entry["token"]?.string ?? ""
                recorder.record { history in
                    if let devices = devices("hold") {
                        history.holds.append(
                            .init(
                                client: "python", devices: devices, token: token,
                                fence: UInt64(max(0, time("fence"))), asked: time("asked"), from: time("from"),
                                until: time("until")))
                    } else if let devices = devices("commit"), entry["lost"] == nil {
                        let generations = (entry["generation"]?.object ?? [:]).compactMapValues {
                            $0.integer.flatMap { UInt64(exactly: $0) }
                        }
                        history.commits.append(
                            .init(
                                devices: devices, value: time("value"), sent: time("sent"),
                                answered: entry["answered"]?.integer, generations: generations))
                    } else if entry["lost"] != nil {
                        history.proofs.append(
                            .init(token: token, sent: time("sent"), answered: time("lost"), isHeld: false))
                    } else if let devices = devices("vain") {
                        history.vainWaits.append(
                            .init(client: "python", devices: devices, asked: time("asked"), answered: time("answered")))
                    } else if let surprise = entry["surprise"]?.string {
                        history.surprises.append(surprise)
                    }
                }
            }
        }
    }
}
