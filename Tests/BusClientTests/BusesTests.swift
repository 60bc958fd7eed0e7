import BusProtocol
import CameraBusTesting
import JSON
import Testing

@testable import BusClient

/// Several buses as one.
@Suite(.timeLimit(.minutes(5))) struct BusesTests {
    /// A bus that knows its clock, and has a lock to give, or not.
    private func bus(clock error: JSONValue = 1000, isBusy: Bool = false) throws -> FakeBus {
        try FakeBus { request, respond in
            switch request.method {
            case "bus.clock":
                respond(.result(["monotonic": 1, "realtime": 1, "synchronized": true, "error": error]))
            case "device.lock" where isBusy: respond(.error(BusError(.deviceBusy, "busy", ["queue": 0])))
            case "device.lock":
                respond(
                    .result([
                        "lock": "t0ken", "fence": 3, "devices": request.params["devices"] ?? [], "holder": [:],
                    ]))
            default: return false
            }
            return true
        }
    }

    private func connected(rig: FakeBus, here: FakeBus) async throws -> Buses {
        let first = try await Client.connect(runtimeDirectory: rig.path, name: "a test", defaultLock: "")
        let second = try await Client.connect(runtimeDirectory: here.path, name: "a test", defaultLock: "")
        return try Buses(["rig": first, "here": second])
    }

    private func publish(_ bus: FakeBus, _ sequence: Int64, realtime: Int64) throws {
        var header = try JSONValue(parsing: FakeBus.header("cam0", "gray", sequence: sequence)).object ?? [:]
        let timestamp: JSONValue = [
            "monotonic": .integer(sequence), "realtime": .integer(realtime), "source": "endOfFrame",
        ]
        header["timestamp"] = timestamp
        bus.publishFrame("cam0", "gray", header: JSONValue.object(header).serialized, payload: [1, 2, 3, 4])
    }

    private func publishError(_ bus: FakeBus, _ reason: BusError.Reason) {
        let error = BusError(reason, "It is away.")
        bus.publishFrame(
            "cam0", "gray", header: Announcement.failure(device: "cam0", rendition: "gray", error: error), payload: nil)
    }

    @Test func `devices and clocks have the names of their hosts`() async throws {
        let (rig, here) = (try bus(clock: 2000), try bus())
        let buses = try await connected(rig: rig, here: here)
        #expect(buses.hosts == ["here", "rig"] && buses["rig"] != nil && buses["nowhere"] == nil)
        let devices = try await buses.devices()
        #expect(devices.keys.sorted() == ["here/cam0", "here/cam1", "rig/cam0", "rig/cam1"])
        #expect(devices["rig/cam1"]?["id"] == "cam1")
        #expect(
            try await buses.clocks() == [
                "here": HostClock(isSynchronized: true, error: 1000),
                "rig": HostClock(isSynchronized: true, error: 2000),
            ])
    }

    @Test func `names that can't be are told with those that there are`() async throws {
        let (rig, here) = (try bus(), try bus())
        let buses = try await connected(rig: rig, here: here)
        for name in ["cam0", "nowhere/cam0", ""] {
            await #expect(throws: BusesError.unknownName(name, hosts: ["here", "rig"])) {
                _ = try await buses.lock(["rig/cam0", name])
            }
        }
        await #expect(throws: BusesError.tooFewNames(least: 1)) { _ = try await buses.lock([]) }
        await #expect(throws: BusesError.tooFewNames(least: 2)) {
            _ = try await buses.frameSets(["rig/cam0", "rig/cam0"])
        }
        let client = try #require(buses["rig"])
        for host in ["", "a/b"] {
            #expect(throws: BusesError.notAHost(host)) { _ = try Buses([host: client]) }
        }
    }

    @Test func `an error says which bus it is of`() async throws {
        let (rig, here) = (try bus(), try bus())
        let buses = try await connected(rig: rig, here: here)
        let error = await #expect(throws: BusesError.self) {
            _ = try await buses.frames(["here/cam0", "rig/cam9"], "gray")
        }
        #expect(error?.host == "rig" && error?.description.hasPrefix("rig: deviceNotFound") == true)
        // The others' subscriptions end with it.
        try await eventually { !here.subscriptions.contains("frame/cam0/gray/") }
    }

    @Test func `locks are taken in the order of the hosts, and given back when one can't be had`() async throws {
        let (rig, here) = (try bus(), try bus())
        let buses = try await connected(rig: rig, here: here)
        let hosts = try await buses.withLock(["rig/cam0", "here/cam1", "here/cam0", "here/cam1"]) { locks in
            #expect(locks["here"]?.devices == ["cam1", "cam0"] && locks["rig"]?.token == "t0ken")
            #expect(locks["nowhere"] == nil && locks.losses.isEmpty)
            return locks.hosts
        }
        #expect(hosts == ["here", "rig"])
        #expect(here.requests.map(\.method) == ["bus.hello", "device.lock", "device.unlock"])
        #expect(rig.requests.map(\.method) == ["bus.hello", "device.lock", "device.unlock"])

        let busy = try bus(isBusy: true)
        let others = try await connected(rig: busy, here: here)
        let error = await #expect(throws: BusesError.self) {
            _ = try await others.lock(["rig/cam0", "here/cam0"])
        }
        guard case .at("rig", .refused(let refusal))? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(refusal.reason == .deviceBusy)
        #expect(here.requests.last?.method == "device.unlock" && busy.requests.last?.method == "device.lock")
    }

    @Test func `all locks are given back, also when one of them can't be`() async throws {
        let rig = try FakeBus { request, respond in
            switch request.method {
            case "device.lock":
                respond(.result(["lock": "t0ken", "fence": 3, "devices": ["cam0"], "holder": [:]]))
            case "device.unlock": respond(.error(BusError(.lockLost, "gone", ["fence": 3])))
            default: return false
            }
            return true
        }
        let here = try bus()
        let buses = try await connected(rig: rig, here: here)
        let locks = try await buses.lock(["rig/cam0", "here/cam0"])
        let error = await #expect(throws: BusesError.self) { _ = try await buses.unlock(locks) }
        #expect(error?.host == "rig" && error?.description == "rig: lockLost: gone")
        #expect(here.requests.last?.method == "device.unlock")
    }

    @Test func `frames come from all, and an error of one is told with its host`() async throws {
        let (rig, here) = (try bus(), try bus())
        let buses = try await connected(rig: rig, here: here)
        let frames = try await buses.frames(["rig/cam0", "here/cam0"], "gray")
        #expect(frames.names == ["rig/cam0", "here/cam0"])
        try publish(here, 1, realtime: 1)
        try publish(rig, 7, realtime: 1)
        var found: [String: UInt64] = [:]
        for _ in 0..<2 {
            let next = try await frames.next()
            found[next.name] = next.frame.header.sequence
        }
        #expect(found == ["here/cam0": 1, "rig/cam0": 7])
        #expect(frames.lost == ["here/cam0": 0, "rig/cam0": 0])
        publishError(rig, .formatUnsupported)
        let error = await #expect(throws: BusesError.self) { _ = try await frames.next() }
        #expect(error?.host == "rig" && error?.description == "rig: formatUnsupported: It is away.")
        try publish(here, 2, realtime: 1)
        #expect(try await frames.next().name == "here/cam0")
        let waiting = Task { try await frames.next().name }
        waiting.cancel()
        await #expect(throws: BusesError.cancelled) { _ = try await waiting.value }
        frames.close()
        let end = await #expect(throws: BusesError.self) { _ = try await frames.next() }
        guard case .at(_, .closed)? = end else {
            Issue.record("\(String(describing: end))")
            return
        }
    }

    @Test func `sets say how sure they are, and go on when a camera is back`() async throws {
        let (rig, here) = (try bus(clock: 2000), try bus())
        let buses = try await connected(rig: rig, here: here)
        let sets = try await buses.frameSets(["rig/cam0", "here/cam0"], "gray", tolerance: .milliseconds(1))
        try publish(rig, 1, realtime: 1_000_000_000)
        try publish(here, 1, realtime: 1_000_300_000)
        let first = try await sets.next()
        #expect(first.parts.map(\.name) == ["rig/cam0", "here/cam0"] && first.missing.isEmpty)
        #expect(first.parts.map(\.offset) == [0, 300_000] && first.spread == 300_000)
        #expect(first.uncertainty == 3000 && first.unsure.isEmpty)
        #expect(first["here/cam0"]?.header.sequence == 1 && first["here/cam1"] == nil)
        #expect(first.description == "rig/cam0, here/cam0: 0.3 ms apart, error at most 0.003 ms")

        let waiting = Task { try await sets.next() }
        publishError(here, .deviceDisconnected)
        try publish(here, 2, realtime: 1_033_000_000)
        try publish(rig, 2, realtime: 1_033_000_000)
        let second = try await waiting.value
        #expect(second.spread == 0 && second.parts.count == 2)
    }

    @Test func `who does not know its clock is named, and who gives no frame at all says why`() async throws {
        let (rig, here) = (try bus(), try bus(clock: .null))
        let buses = try await connected(rig: rig, here: here)
        let sets = try await buses.frameSets(["rig/cam0", "here/cam0"], "gray", tolerance: .milliseconds(1))
        publishError(here, .deviceDisconnected)
        let error = await #expect(throws: BusesError.self) { _ = try await sets.next() }
        #expect(error?.host == "here")
        try publish(rig, 1, realtime: 1_000_000_000)
        try publish(here, 1, realtime: 1_000_000_000)
        let set = try await sets.next()
        #expect(set.uncertainty == nil && set.unsure == ["here"] && set.doubt.hasSuffix("the clock of here"))
    }

    @Test func `what is known of clocks is said in words`() {
        let kept = HostClock(isSynchronized: true, error: 2_500_000)
        #expect(kept.description == "error at most 2.5 ms")
        let left = HostClock(isSynchronized: false, error: 12_345_678)
        #expect(left.description == "error at most 12.3 ms, not synchronized now")
        let unknown = HostClock(isSynchronized: false, error: nil)
        #expect(unknown.description.contains("error unknown"))
        #expect(HostClock.milliseconds(0) == "0" && HostClock.milliseconds(40_000) == "0.04")
        #expect(HostClock.milliseconds(3_000_000_000) == "3000")

        #expect(HostClock.uncertainty([kept, left]) == 14_845_678)
        let least = HostClock(isSynchronized: true, error: 1)
        #expect(HostClock.uncertainty([kept, least, left]) == 14_845_678)
        #expect(HostClock.uncertainty([unknown]) == 0 && HostClock.uncertainty([nil]) == 0)
        #expect(HostClock.uncertainty([kept, unknown]) == nil && HostClock.uncertainty([kept, nil]) == nil)
        let most = HostClock(isSynchronized: true, error: .max)
        #expect(HostClock.uncertainty([most, kept]) == .max)
    }
}
