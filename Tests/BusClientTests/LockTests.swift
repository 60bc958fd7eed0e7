import BusClient
import BusProtocol
import CameraBusTesting
import JSON
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct LockTests {
    private static let grant: JSONValue = ["lock": "t0ken", "fence": 3, "devices": ["cam0"], "holder": [:]]

    @Test func `the body runs under the lock, which is given back however it ends`() async throws {
        let bus = try FakeBus { request, respond in
            if request.method == "device.lock" { respond(.result(Self.grant)) }
            return request.method == "device.lock"
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let fence = try await client.withLock(["cam0"], wait: .seconds(2), note: "why") { lock in
            #expect(lock.token == "t0ken")
            return lock.fence
        }
        #expect(fence == 3)
        let requests = bus.requests
        #expect(requests.map(\.method) == ["bus.hello", "device.lock", "device.unlock"])
        #expect(requests[1].params == ["devices": ["cam0"], "wait": 2000, "note": "why"])
        #expect(requests[2].params == ["lock": "t0ken"])
        await #expect(throws: CancellationError.self) {
            try await client.withLock(["cam0"]) { _ in throw CancellationError() }
        }
        #expect(bus.requests.last?.method == "device.unlock")
    }

    @Test(arguments: [
        (["cam0"], nil), (["cam1", "cam0"], nil), (["cam2"], BusError.Reason.deviceBusy),
        (["cam0", "cam2"], .lockRequired),
    ])
    func `a lock that was handed on is joined where it covers all`(
        _ devices: [String], _ refusal: BusError.Reason?
    ) async throws {
        let bus = try FakeBus { request, respond in
            switch (request.method, request.params["lock"]) {
            case ("device.renew", "theirs"):
                respond(
                    .result(["expires": .null, "fence": 7, "devices": ["cam0", "cam1"], "holder": [:]]))
            case ("device.renew", _): respond(.error(BusError(.lockLost, "gone", ["fence": 7])))
            case ("device.lock", _): respond(.error(BusError(.deviceBusy, "busy", ["queue": 0])))
            default: return false
            }
            return true
        }
        func client(_ lock: String) async throws -> Client {
            try await Client.connect(runtimeDirectory: bus.path, name: "a test", defaultLock: lock)
        }
        func reason(_ client: Client) async throws -> BusError.Reason? {
            do {
                try await client.withLock(devices) { lock in
                    #expect(lock.isJoined && lock.token == "theirs" && lock.fence == 7)
                    #expect(lock.devices == ["cam0", "cam1"])
                }
                return nil
            } catch let error as ClientError {
                return error.reason
            }
        }
        #expect(try await reason(client("theirs")) == refusal)
        #expect(try await reason(client("garbage")) == .lockLost)
        // Without a lock it has to ask for one.
        #expect(try await reason(client("")) == .deviceBusy)
        #expect(!bus.requests.contains { $0.method == "device.unlock" })
    }

    @Test func `a cancelled body gives its lock back too`() async throws {
        let bus = try FakeBus { request, respond in
            if request.method == "device.lock" { respond(.result(Self.grant)) }
            return request.method == "device.lock"
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let task = Task {
            try await client.withLock(["cam0"]) { _ in
                withUnsafeCurrentTask { $0?.cancel() }
                try Task.checkCancellation()
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(bus.requests.last?.method == "device.unlock")
    }

    @Test func `who gives up waiting tells the bus, and gives back what comes too late`() async throws {
        let asked = AsyncStream.makeStream(of: (@Sendable (FakeBus.Reply) -> Void).self)
        let bus = try FakeBus { request, respond in
            if request.method == "device.lock" { asked.continuation.yield(respond) }
            return request.method == "device.lock"
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let task = Task { try await client.lock(["cam0"], wait: .seconds(600)) }
        var iterator = asked.stream.makeAsyncIterator()
        let respond = try #require(await iterator.next())
        task.cancel()
        await #expect(throws: ClientError.cancelled) { try await task.value }
        try await eventually { bus.requests.last?.method == "bus.cancel" }
        let key = try #require(bus.requests.first { $0.method == "device.lock" }?.key)
        #expect(bus.requests.last?.params == ["key": .string(key)])
        // It was granted in the same moment.
        respond(.result(Self.grant))
        try await eventually { bus.requests.last?.method == "device.unlock" }
        #expect(bus.requests.last?.params == ["lock": "t0ken"])
    }

    @Test func `a session is asked for under a key, and one that comes too late is deleted`() async throws {
        let asked = AsyncStream.makeStream(of: (@Sendable (FakeBus.Reply) -> Void).self)
        let bus = try FakeBus { request, respond in
            if request.method == "session.create" { asked.continuation.yield(respond) }
            return request.method == "session.create"
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let task = Task { try await client.createSession(["name": "door"], timeout: .seconds(600)) }
        var iterator = asked.stream.makeAsyncIterator()
        let respond = try #require(await iterator.next())
        #expect(bus.requests.first { $0.method == "session.create" }?.key != nil)
        task.cancel()
        await #expect(throws: ClientError.cancelled) { try await task.value }
        respond(.result(["session": "s1", "state": ["state": "stopped"]]))
        try await eventually { bus.requests.last?.method == "session.delete" }
        #expect(bus.requests.last?.params == ["session": "s1"])
    }

    @Test func `a source is asked for under a key, and one that comes too late is deleted`() async throws {
        let asked = AsyncStream.makeStream(of: (@Sendable (FakeBus.Reply) -> Void).self)
        let bus = try FakeBus { request, respond in
            if request.method == "source.create" { asked.continuation.yield(respond) }
            return request.method == "source.create"
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let task = Task {
            try await client.createSource("door", pixelFormat: "GREY", width: 64, height: 48, timeout: .seconds(600))
                .device
        }
        var iterator = asked.stream.makeAsyncIterator()
        let respond = try #require(await iterator.next())
        #expect(bus.requests.first { $0.method == "source.create" }?.key != nil)
        task.cancel()
        await #expect(throws: ClientError.cancelled) { try await task.value }
        respond(.result(["device": "door", "uniqueID": "client-door", "path": "/nowhere", "bytes": 3072]))
        try await eventually { bus.requests.last?.method == "source.delete" }
        #expect(bus.requests.last?.params == ["device": "door"])
    }

    @Test func `a rig's movies that begin too late are ended, all of them`() async throws {
        let asked = AsyncStream.makeStream(of: (@Sendable (FakeBus.Reply) -> Void).self)
        let bus = try FakeBus { request, respond in
            if request.method == "movie.start" { asked.continuation.yield(respond) }
            return request.method == "movie.start"
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let task = Task { try await client.startMovies(ofRig: "stereo", timeout: .seconds(600)).map(\.id) }
        var iterator = asked.stream.makeAsyncIterator()
        let respond = try #require(await iterator.next())
        task.cancel()
        await #expect(throws: ClientError.cancelled) { try await task.value }
        respond(.result(["movies": [["movie": "m1", "path": "/v/a.mp4"], ["movie": "m2", "path": "/v/b.mp4"]]]))
        try await eventually { bus.requests.last?.params == ["movie": "m2"] }
        #expect(
            bus.requests.filter { $0.method == "movie.stop" }.map(\.params) == [["movie": "m1"], ["movie": "m2"]])
    }

    @Test func `a session that was ended tells whether that could be written`() async throws {
        let bus = try FakeBus { request, respond in
            guard request.method.hasPrefix("session.") else { return false }
            let isLast = request.params["session"] == "s2"
            respond(.result(.members(["session": "s1", "state": [:], "kept": isLast ? nil : false])))
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        #expect(try await client.stopSession("s1").isKept == false)
        #expect(try await client.deleteSession("s1") == false)
        #expect(try await client.deleteSession("s2"))
    }

    @Test func `changes carry the lock`() async throws {
        let bus = try FakeBus { request, respond in
            if request.method.hasPrefix("device.") { respond(.result(["verdict": "valid"])) }
            return request.method.hasPrefix("device.")
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        _ = try await client.set("cam0", controls: ["brightness": 5], lock: "t")
        #expect(bus.requests.last?.params == ["device": "cam0", "controls": ["brightness": 5], "lock": "t"])
        _ = try await client.configure([["device": "cam0", "frameRate": 15]], lock: "t")
        #expect(bus.requests.last?.params == ["changes": [["device": "cam0", "frameRate": 15]], "lock": "t"])
        _ = try await client.configure([["device": "cam0", "frameRate": 30]], lock: "t", mode: .nearest, dryRun: true)
        #expect(
            bus.requests.last?.params
                == ["changes": [["device": "cam0", "frameRate": 30]], "lock": "t", "mode": "nearest", "dryRun": true])
    }
}
