import BusProtocol
import CameraBusTesting
import JSON
import Testing

@testable import BusClient

/// Locks of a client that the bus can't see, as those on other machines.
@Suite(.timeLimit(.minutes(5))) struct LockRenewalTests {
    private static let grant: JSONValue = ["lock": "t0ken", "fence": 3, "devices": ["cam0"], "holder": [:]]

    /// - Parameters:
    ///   - lease: of the lock, in milliseconds.
    ///   - renewal: what is answered to its renewal.
    private func bus(lease: Int64, renewal: FakeBus.Reply) throws -> FakeBus {
        try FakeBus { request, respond in
            switch request.method {
            case "bus.hello":
                respond(
                    .result([
                        "server": "CameraBus", "version": "0", "epoch": "e1", "features": ["locks", "keys", "remote"],
                        "you": ["uid": 4_026_531_841, "gid": 0, "pid": 0],
                    ]))
            case "device.lock", "device.takeOver": respond(.result(Self.grant))
            case "device.locks": respond(.result(["locks": [["fence": 3, "lease": JSONValue(lease)]]]))
            case "device.renew": respond(renewal)
            default: return false
            }
            return true
        }
    }

    private func renewals(_ bus: FakeBus) -> Int { bus.requests.count { $0.method == "device.renew" } }

    @Test(arguments: [false, true])
    func `a lock is renewed by itself until it is unlocked`(_ takingOver: Bool) async throws {
        let bus = try bus(lease: 6000, renewal: .result(["fence": 3, "devices": ["cam0"]]))
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test", defaultLock: "")
        let lock = takingOver ? try await client.takeOver(["cam0"]) : try await client.lock(["cam0"])
        #expect(lock.isRenewed)
        try await eventually { renewals(bus) > 1 }
        #expect(bus.requests.last { $0.method == "device.renew" }?.params == ["lock": "t0ken"])
        #expect(lock.loss == nil)
        let waiting = Task { await lock.lost() }
        try await client.unlock(lock)
        #expect(await waiting.value == nil)
        #expect(await lock.lost() == nil)
    }

    static let ends = [
        BusError(.lockLost, "The lock was taken over.", ["fence": 3]),
        BusError(.unauthorized, "The key of this client has the role 'view'.", ["status": "denied"]),
    ]

    @Test(arguments: ends)
    func `what was taken away is told to who holds it, also under withLock`(_ gone: BusError) async throws {
        // A third of it is waited for; the rest is for a machine that is slow.
        let bus = try bus(lease: 6000, renewal: .error(gone))
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test", defaultLock: "")
        try await client.withLock(["cam0"]) { lock in
            guard case .ended(let error) = await lock.lost() else {
                Issue.record("\(String(describing: lock.loss))")
                return
            }
            #expect(error.message == gone.message && lock.loss == .ended(error))
        }
    }

    @Test func `a lock that can't be renewed within its lease is lost`() async throws {
        let bus = try bus(lease: 90, renewal: .nothing)
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test", defaultLock: "")
        let lock = try await client.lock(["cam0"])
        let loss = await lock.lost()
        guard case .notRenewed(.milliseconds(90), .timedOut) = loss else {
            Issue.record("\(String(describing: loss))")
            return
        }
        #expect("\(try #require(loss))".contains("its lease of 0.09 s has expired"))
    }

    @Test func `a link that was cut is a reason to renew at once`() async throws {
        // Its third is longer than anything here takes.
        let bus = try bus(lease: 3_600_000, renewal: .result(["fence": 3, "devices": ["cam0"]]))
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test", defaultLock: "")
        let lock = try await client.lock(["cam0"])
        try await eventually { bus.requests.contains { $0.method == "device.locks" } }
        bus.stop()
        await client.waitUntilCut()
        try bus.restart()
        try await eventually { renewals(bus) > 0 }
        #expect(lock.loss == nil)
    }

    @Test func `that a link was cut is told also to who asks when there is another`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test", defaultLock: "")
        let answer = try await client.request("bus.ping")
        bus.stop()
        await client.waitUntilCut()
        try bus.restart()
        _ = try await client.request("bus.ping")
        await client.line.waitUntilCut(answer.connection)
    }

    @Test func `a lease that was asked for is left to who asked, and the end of the client is no loss`() async throws {
        let bus = try bus(lease: 90, renewal: .nothing)
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test", defaultLock: "")
        #expect(try await client.lock(["cam0"], lease: .seconds(60)).isRenewed == false)
        let endless = try self.bus(lease: 3_600_000, renewal: .nothing)
        let other = try await Client.connect(runtimeDirectory: endless.path, name: "a test", defaultLock: "")
        let lock = try await other.lock(["cam0"])
        let waiting = Task { await lock.lost() }
        await other.close()
        #expect(await waiting.value == nil)
    }
}
