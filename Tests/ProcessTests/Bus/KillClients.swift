import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Synchronization
import ZeroMQ

/// SplitMix64: the same seed makes the same choices. (What the processes make of them differs from run to run.)
struct Dice: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
    mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration {
        .milliseconds(Int.random(in: range, using: &self))
    }
}

/// What all clients write into, and when they are to stop.
final class KillRecorder: Sendable {
    private let history = Mutex(KillHistory())
    private let isOver = Atomic<Bool>(false)
    private let lastValue = Atomic<Int64>(0)

    var isStopped: Bool { isOver.load(ordering: .relaxed) }
    func stop() { isOver.store(true, ordering: .relaxed) }
    func record(_ change: (inout KillHistory) -> Void) { history.withLock { change(&$0) } }
    var written: KillHistory { history.withLock { $0 } }

    /// Another one each time, within the control's range.
    func nextValue() -> Int64 { lastValue.add(1, ordering: .relaxed).newValue % 5000 + 1 }
}

/// One program that uses the bus while its coordinator is killed.
struct KillClient {
    /// A control that takes 1 to 5000, and one that takes 0 to 128.
    static let counter = "exposure_time_absolute"
    static let pair = "saturation"
    /// Longer than anything is held.
    static let wait = Duration.seconds(10)
    /// Each bus lets wait anew, and who comes back to it last is served last: on a busy machine for minutes.
    static let patience = Duration.seconds(600)

    let name: String
    let client: Client
    let recorder: KillRecorder
    var dice: Dice

    init(_ name: String, _ bus: BusHarness, _ recorder: KillRecorder, seed: UInt64) async throws {
        self.name = name
        self.recorder = recorder
        client = try await bus.connect(name: name)
        dice = Dice(seed: seed)
    }

    private var now: Int64 { MonotonicClock.now() }

    // MARK: What they do

    /// Locks some devices, looks, changes, unlocks, again and again.
    mutating func contend(for choices: [[String]]) async {
        while !recorder.isStopped {
            let devices = choices[dice.below(choices.count)]
            guard let (lock, asked) = await lock(devices) else { continue }
            let from = now
            if devices.count > 1 {
                await readPair(devices)
                // One right after the other, so that many a kill meets the moment in which both devices are told.
                for _ in 0..<dice.below(80) where !recorder.isStopped {
                    if await change(lock) { continue }
                    await readPair(devices)
                    await read(devices)
                }
            }
            await change(lock)
            if dice.chance(30) { await read(devices) }
            await pause(dice.chance(20) ? 80...300 : 0...30)
            await change(lock)
            await unlock(lock, asked: asked, from: from, until: .max)
            await pause(0...20)
        }
    }

    /// Locks with a lease, and renews it, or lets it run out.
    mutating func lease(_ device: String) async {
        while !recorder.isStopped {
            let lease = dice.milliseconds(300...1200)
            let nanoseconds = lease.components.seconds * 1_000_000_000 + lease.components.attoseconds / 1_000_000_000
            guard let (lock, asked) = await lock([device], lease: lease) else { continue }
            let from = now
            var until = asked + nanoseconds
            for _ in 0..<dice.below(4) {
                await pause(20...150)
                let sent = now
                do {
                    try await client.renew(lock)
                    recorder.record {
                        $0.proofs.append(.init(token: lock.token, sent: sent, answered: now, isHeld: true))
                    }
                    until = max(until, sent + nanoseconds)
                } catch {
                    refused(error, lock, sent)
                    if error.reason == .lockLost { break }
                }
            }
            await change(lock)
            if dice.chance(50) {
                await unlock(lock, asked: asked, from: from, until: until)
            } else {
                hold(lock, asked: asked, from: from, until: min(until, now))
            }
        }
    }

    /// Holds a lock from the first to the last moment, and uses it.
    mutating func holdOn(to device: String) async {
        guard let (lock, asked) = await lock([device]) else { return }
        let from = now
        while !recorder.isStopped {
            await change(lock)
            await read([device])
            await pause(10...100)
        }
        await unlock(lock, asked: asked, from: from, until: .max)
    }

    /// Tries to get what another has all the time.
    mutating func intrude(on device: String) async {
        while !recorder.isStopped {
            let asked = now
            do {
                let lock = try await client.lock([device])
                let from = now
                await unlock(lock, asked: asked, from: from, until: .max)
            } catch {
                if error.reason != .deviceBusy { surprise(error, "device.lock") }
            }
            await pause(10...100)
        }
    }

    // MARK: The parts

    private mutating func lock(_ devices: [String], lease: Duration? = nil) async -> (DeviceLock, asked: Int64)? {
        let asked = now
        do {
            return (try await client.lock(devices, wait: Self.wait, lease: lease, timeout: Self.patience), asked)
        } catch {
            let answered = now
            if error.reason == .lockTimeout {
                recorder.record {
                    $0.vainWaits.append(.init(client: name, devices: devices, asked: asked, answered: answered))
                }
            } else {
                surprise(error, "device.lock")
            }
            return nil
        }
    }

    private func unlock(_ lock: DeviceLock, asked: Int64, from: Int64, until: Int64) async {
        let sent = now
        hold(lock, asked: asked, from: from, until: min(until, sent))
        do {
            try await client.unlock(lock, timeout: Self.patience)
        } catch {
            // A lease may have run out.
            if error.reason != .lockLost || until == .max { surprise(error, "device.unlock") }
        }
    }

    private func hold(_ lock: DeviceLock, asked: Int64, from: Int64, until: Int64) {
        recorder.record {
            $0.holds.append(
                .init(
                    client: name, devices: lock.devices, token: lock.token, fence: UInt64(max(0, lock.fence)),
                    asked: asked, from: from, until: until))
        }
    }

    /// - Returns: false when no answer came.
    @discardableResult
    private func change(_ lock: DeviceLock) async -> Bool {
        let value = recorder.nextValue()
        var controls: [String: JSONValue] = [Self.counter: .integer(value)]
        if lock.devices.count > 1 { controls[Self.pair] = .integer(value % 129) }
        let changes = lock.devices.map { JSONValue.object(["device": .string($0), "controls": .object(controls)]) }
        let sent = now
        do {
            let answer = try await client.configure(changes, lock: lock.token)
            let answered = now
            let generations = (answer["generation"]?.object ?? [:]).compactMapValues {
                $0.integer.flatMap { UInt64(exactly: $0) }
            }
            recorder.record {
                $0.commits.append(
                    .init(
                        devices: lock.devices, value: value, sent: sent, answered: answered, generations: generations))
                $0.proofs.append(.init(token: lock.token, sent: sent, answered: answered, isHeld: true))
            }
            return true
        } catch {
            refused(error, lock, sent)
            guard error.reason != .lockLost else { return false }
            recorder.record { $0.commits.append(.init(devices: lock.devices, value: value, sent: sent)) }
            return false
        }
    }

    private func refused(_ error: ClientError, _ lock: DeviceLock, _ sent: Int64) {
        if error.reason == .lockLost {
            recorder.record { $0.proofs.append(.init(token: lock.token, sent: sent, answered: now, isHeld: false)) }
        } else {
            surprise(error, "under a lock")
        }
    }

    private func read(_ devices: [String]) async {
        for device in devices {
            let from = now
            guard let value = try? await client.device(device), value["worker"]?["state"] == "running",
                let present = value["controls"]?[Self.counter]?.integer,
                let generation = value["generation"]?.integer.flatMap({ UInt64(exactly: $0) })
            else { continue }
            let until = now
            recorder.record {
                $0.readings.append(
                    .init(device: device, value: present, generation: generation, from: from, until: until))
            }
        }
    }

    private func readPair(_ devices: [String]) async {
        var values: [Int64] = []
        for device in devices {
            guard let controls = try? await client.controls(device),
                let value = controls.first(where: { $0["name"]?.string == Self.pair })?["value"]?.integer
            else { return }
            values.append(value)
        }
        recorder.record { $0.pairs.append(.init(client: name, values: values, time: now)) }
    }

    /// Reads what is there at the end, when nobody changes anything any more.
    func readAtEnd(_ devices: [String]) async { await read(devices) }

    // A request that was on its way is lost with the coordinator; that is in the contract.
    private func surprise(_ error: ClientError, _ what: String) {
        switch error {
        case .connectionLost, .cancelled: break
        default: recorder.record { $0.surprises.append("\(name), \(what): \(error)") }
        }
    }

    /// So that a kill meets it at any point of its work, and between two works.
    private mutating func pause(_ range: ClosedRange<Int>) async {
        try? await Task.sleep(for: dice.milliseconds(range))
    }
}

/// Sees when the machine runs nobody: by a thread that wakes every few milliseconds, or doesn't.
final class StallWatcher: Sendable {
    private let thread: NamedThread
    private static let interval: Int64 = 5_000_000

    init(_ recorder: KillRecorder) throws {
        thread = try NamedThread(name: "stall-watcher") {
            var last = MonotonicClock.now()
            while !recorder.isStopped {
                poll(nil, 0, Int32(Self.interval / 1_000_000))
                let now = MonotonicClock.now()
                if now - last > 3 * Self.interval {
                    let stall = KillHistory.Stall(from: last, until: now)
                    recorder.record { $0.stalls.append(stall) }
                }
                last = now
            }
        }
    }

    func join() { thread.join() }
}

/// Keeps every frame's number of several cameras.
final class FrameWatcher: Sendable {
    private let thread: NamedThread

    /// Returns when its subscriptions are in force.
    init(_ bus: BusHarness, _ devices: [String], _ recorder: KillRecorder) async throws {
        let paths = devices.map { bus.directory.mediaSocket($0) }
        let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
        thread = try NamedThread(name: "frame-watcher") {
            do {
                let client = try RawClient(.subscribe, path: paths[0], topics: devices.map { "frame/\($0)/native/" })
                for path in paths.dropFirst() { try client.socket.connect("ipc://\(path)") }
                var seen: Set<String> = []
                while !recorder.isStopped {
                    let parts = try client.receive(within: 20)
                    guard parts.count > 1 else { continue }
                    let header = try JSONValue(parsing: parts[1].bytes)
                    guard let device = header["device"]?.string, let stream = header["stream"]?.string,
                        let number = header["captureSequence"]?.integer.flatMap({ UInt64(exactly: $0) }),
                        let sequence = header["sequence"]?.integer.flatMap({ UInt64(exactly: $0) })
                    else { continue }
                    recorder.record {
                        $0.frames.append(
                            .init(
                                device: device, stream: stream, captureSequence: number, sequence: sequence,
                                time: MonotonicClock.now()))
                    }
                    if seen.insert(device).inserted, seen.count == devices.count { continuation.yield(true) }
                }
            } catch {
                recorder.record { $0.surprises.append("a subscriber: \(error)") }
                continuation.yield(false)
            }
        }
        for await isReady in stream {
            guard isReady else { throw TestingError("no frames came") }
            break
        }
    }

    func join() { thread.join() }
}
