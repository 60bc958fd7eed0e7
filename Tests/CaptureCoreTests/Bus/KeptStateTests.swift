import JSON
import Testing

@testable import CaptureCore

@Suite struct KeptStateTests {
    private func lock(_ fence: UInt64, pid: Int32 = 7, start: UInt64? = 70, lease: Int64? = nil, expires: Int64? = nil)
        -> Lock
    {
        Lock(
            id: "l\(fence)", tokenHash: "t\(fence)", devices: ["cam\(fence)"],
            holder: LockHolder(uid: 1, gid: 2, pid: pid, startTime: start, name: "me"), fence: fence, note: "why",
            since: 5, lease: lease, expires: expires, request: fence == 1 ? "r" : nil)
    }

    private func state(_ locks: [Lock]) -> KeptState {
        KeptState(boot: "b", epoch: "e", fence: 64, locks: locks, decided: ["x"])
    }

    @Test func `what is written is read again`() throws {
        let state = state([lock(1), lock(2, start: nil), lock(3, lease: 10, expires: 20)])
        #expect(try KeptState(json: state.json) == state)
        // One that an earlier version wrote decided nothing.
        var old = state.json.object ?? [:]
        old["decided"] = nil
        #expect(try KeptState(json: .object(old)).decided == [])
    }

    @Test func `exposures that are to be locked are read again, and one that is none costs nobody else`() throws {
        func exposure(_ device: String, startTime: UInt64?) -> KeptExposure {
            KeptExposure(
                device: device, holder: LockHolder(uid: 1, gid: 2, pid: 7, startTime: startTime, name: "me"), fence: 9,
                format: ["pixelFormat": "YUYV", "width": 640, "height": 480], worker: 42)
        }
        var state = state([])
        state.exposures = [exposure("a", startTime: 70), exposure("b", startTime: nil)]
        #expect(try KeptState(json: state.json) == state)
        var json = state.json.object ?? [:]
        json["exposures"] = .array([["device": "c"], .null] + (json["exposures"]?.array ?? []))
        #expect(try KeptState(json: .object(json)) == state)
        // Those before this version have none.
        json["exposures"] = nil
        #expect(try KeptState(json: .object(json)).exposures == [])
    }

    @Test func `what is set for photos is read again, and what is none is left out`() throws {
        var state = state([])
        #expect(state.json["standIns"] == nil)
        state.standIns = ["virtual-0": ["controls": ["exposure_time_absolute"]]]
        #expect(try KeptState(json: state.json) == state)
        var json = state.json.object ?? [:]
        json["standIns"] = .object((json["standIns"]?.object ?? [:]).merging(["virtual-1": 7]) { $1 })
        #expect(try KeptState(json: .object(json)) == state)
    }

    @Test func `sessions stay that belong to nobody, or to a process that lives`() throws {
        func session(_ id: String, pid: Int32, isDetached: Bool = false) -> CaptureSession {
            let owner = LockHolder(uid: 1, gid: 2, pid: pid, startTime: 70, name: "me")
            return CaptureSession(id: id, owner: owner, isDetached: isDetached, since: 5)
        }
        var state = state([])
        state.sessions = [session("a", pid: 7), session("b", pid: 8), session("c", pid: 8, isDetached: true)]
        #expect(try KeptState(json: state.json) == state)
        let (kept, ended) = state.survivingSessions(boot: "b") { $0.pid == 7 }
        #expect(kept.map(\.id) == ["a", "c"] && ended.map(\.id) == ["b"])
        #expect(state.survivingSessions(boot: "other") { _ in true }.kept.isEmpty)
        var damaged = state.json.object ?? [:]
        // One that is none costs nobody else.
        let good = state.json["sessions"]?.array ?? []
        damaged["sessions"] = .array([["id": "bad"], .null, ["id": "../x"]] + good)
        let read = try KeptState(json: .object(damaged))
        #expect(read.sessions == state.sessions)
        #expect(read.unreadableSessions == ["bad", "unknown", "unknown"])
        #expect(read.locks == state.locks && read.fence == state.fence)
    }

    @Test func `what is not just so is not read, and its fence is`() throws {
        let good = state([lock(1), lock(3, lease: 10, expires: 20)]).json.object ?? [:]
        for (name, value) in [
            ("version", 2), ("version", .null), ("boot", .null), ("epoch", 5), ("fence", -1), ("fence", "64"),
            ("locks", .null), ("locks", [["id": "x"]]), ("locks", [.null]),
        ] as [(String, JSONValue)] {
            var bad = good
            bad[name] = value
            #expect(throws: KeptState.Unreadable.self, "\(name): \(value)") { try KeptState(json: .object(bad)) }
        }
        let entry = try #require(good["locks"]?[1]?.object)
        for (name, value) in [
            ("token", ""), ("devices", []), ("devices", ["cam0", 5]), ("fence", -3), ("since", .null),
            ("expires", .null),
            ("holder", ["uid": -1, "gid": 0, "pid": 1, "name": "x"]),
            ("holder", ["uid": 1, "gid": 0, "pid": 4_294_967_296, "name": "x"]),
        ] as [(String, JSONValue)] {
            var bad = entry
            bad[name] = value.isNull ? nil : value
            var document = good
            document["locks"] = [.object(bad)]
            #expect(throws: KeptState.Unreadable.self, "\(name): \(value)") {
                try KeptState(json: .object(document))
            }
        }
        #expect(KeptState.fence(of: ["version": 99, "fence": 12]) == 12)
        #expect(KeptState.fence(of: [:]) == nil)
    }

    @Test func `locks of the living stay, and leases that have time left`() {
        let locks = [
            lock(1, pid: 7), lock(2, pid: 8), lock(3, pid: 9, start: nil), lock(4, pid: 0, lease: 100, expires: 60),
            lock(5, pid: 8, lease: 100, expires: 50), lock(6, pid: 8, lease: 100, expires: 51),
            lock(7, pid: 8, lease: 10, expires: .max),
        ]
        let (kept, ended) = state(locks).survivors(boot: "b", now: 50) { $0.pid == 7 || $0.pid == 9 }
        #expect(kept.map(\.fence) == [1, 4, 6, 7])
        #expect(ended.map(\.lock.fence) == [2, 3, 5])
        #expect(ended.map(\.cause) == [.holderExited, .holderExited, .leaseExpired])
        // However long the file says: never more than the lease from now on.
        #expect(kept.last?.expires == 60)
    }

    @Test func `of another boot nothing stays`() {
        let (kept, ended) = state([lock(1), lock(4, lease: 100, expires: 60)]).survivors(boot: "c", now: 50) { _ in
            Issue.record("pids of another boot mean nothing")
            return true
        }
        #expect(kept.isEmpty && ended.count == 2)
    }

    @Test func `a table goes on from it`() throws {
        var table = LockTable(fence: 64, locks: [lock(1), lock(2)])
        #expect(table.fence == 64)
        #expect(table.reissue(id: "l1", tokenHash: "new")?.fence == 1)
        #expect(table.reissue(id: "none", tokenHash: "new") == nil)
        #expect(throws: Never.self) { try table.authorize(tokenHash: "new", devices: ["cam1"]).get() }
        #expect(throws: (any Error).self) { try table.authorize(tokenHash: "t1", devices: ["cam1"]).get() }
        table.raise(fence: 80)
        table.raise(fence: 70)
        table.raise(fence: .max)
        let request = LockRequest(
            ticket: 1, lockID: "n", tokenHash: "tn", devices: ["z"],
            holder: LockHolder(uid: 1, gid: 1, pid: 1, startTime: 1, name: ""))
        _ = table.request(request, at: 0)
        #expect(table.lock(on: "z")?.fence == 81)
    }
}
