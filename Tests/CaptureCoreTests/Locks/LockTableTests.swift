import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite final class LockTableTests {
    private var table = LockTable()
    private var tickets: UInt64 = 0

    private func holder(_ pid: Int32, startTime: UInt64? = 7) -> LockHolder {
        LockHolder(uid: 1000, gid: 1000, pid: pid, startTime: startTime, name: "p\(pid)")
    }

    private func make(
        _ devices: [String], pid: Int32 = 1, wait: Int64 = 0, lease: Int64? = nil
    ) -> LockRequest {
        tickets += 1
        return LockRequest(
            ticket: tickets, lockID: "l\(tickets)", tokenHash: "t\(tickets)", devices: devices, holder: holder(pid),
            wait: wait, lease: lease)
    }

    private func ask(
        _ devices: [String], pid: Int32 = 1, wait: Int64 = 0, lease: Int64? = nil, at now: Instant = 0
    ) -> [LockTable.Action] {
        let request = make(devices, pid: pid, wait: wait, lease: lease)
        return table.request(request, at: now)
    }

    private func grants(_ actions: [LockTable.Action]) -> [UInt64] {
        actions.compactMap { if case .grant(let ticket, _) = $0 { ticket } else { nil } }
    }

    @Test func aFreeDeviceIsGrantedWithTheNextFence() throws {
        let actions = ask(["a", "b"], at: 5)
        let lock = try #require(table.locks.first)
        #expect(actions == [.grant(ticket: 1, lock)])
        #expect(lock.fence == 1 && lock.devices == ["a", "b"] && lock.since == 5 && lock.expires == nil)
        #expect(table.lock(on: "b") == lock && table.lock(on: "c") == nil)
        #expect(table.nextDeadline == nil)
    }

    @Test func aHeldDeviceIsRefusedWithItsHolderAndQueue() {
        _ = ask(["a"], pid: 1)
        _ = ask(["a"], pid: 2, wait: 100)
        let actions = ask(["b", "a"], pid: 3)
        #expect(actions == [.refuse(ticket: 3, .busy(device: "a", holder: holder(1), queue: 1))])
        let error = LockTable.Refusal.busy(device: "a", holder: holder(1), queue: 1).error()
        #expect(error.reason == .deviceBusy)
        #expect(error.data["holder"] == ["uid": 1000, "gid": 1000, "pid": 1, "name": "p1"])
        #expect(error.data["queue"] == 1 && error.data["device"] == "a")
        // device.set, which has no wait, is refused with the same sentence.
        #expect(error.message.contains("device.lock with wait"))
    }

    @Test func aFreeDevicePromisedToAnEarlierWaiterIsRefused() {
        _ = ask(["a"], pid: 1)
        _ = ask(["a", "b"], pid: 2, wait: 100)
        #expect(ask(["b"], pid: 3) == [.refuse(ticket: 3, .busy(device: "b", holder: holder(2), queue: 1))])
        // What shares nothing with the queue goes ahead.
        #expect(grants(ask(["c"], pid: 4)) == [4])
    }

    @Test func waitersAreServedInOrderAndNeverOvertaken() throws {
        _ = ask(["a"], pid: 1)
        _ = ask(["a", "b"], pid: 2, wait: 100)
        _ = ask(["b"], pid: 3, wait: 100)
        _ = ask(["a"], pid: 4, wait: 100)
        #expect(table.waitingTickets == [2, 3, 4] && table.waiters(on: "b").map(\.ticket) == [2, 3])
        #expect(grants(table.unlock(tokenHash: "t1", at: 1) ?? []) == [2])
        #expect(grants(table.unlock(tokenHash: "t2", at: 2) ?? []) == [3, 4])
        #expect(table.waitingTickets.isEmpty)
    }

    @Test func aWaitEndsExactlyAtItsLimit() {
        _ = ask(["a"], pid: 1)
        _ = ask(["a"], pid: 2, wait: 100, at: 50)
        #expect(table.nextDeadline == 150)
        #expect(table.advance(to: 149).isEmpty)
        #expect(table.advance(to: 150) == [.refuse(ticket: 2, .timeout(device: "a", holder: holder(1), queue: 0))])
        #expect(LockTable.Refusal.timeout(device: "a", holder: nil, queue: 0).error().data["holder"] == .null)
        #expect(table.nextDeadline == nil)
    }

    @Test func aWaitWhoseLimitIsReachedGetsNothingThatComesFreeThen() {
        _ = ask(["a"], pid: 1)
        _ = ask(["a"], pid: 2, wait: 100)
        let actions = table.unlock(tokenHash: "t1", at: 100) ?? []
        #expect(grants(actions).isEmpty)
        #expect(actions.first == .refuse(ticket: 2, .timeout(device: "a", holder: holder(1), queue: 0)))
    }

    @Test func theEndOfAWaitWakesThoseBehindIt() {
        _ = ask(["a"], pid: 1)
        _ = ask(["a", "b"], pid: 2, wait: 100)
        _ = ask(["b"], pid: 3, wait: 500)
        #expect(grants(table.advance(to: 100)) == [3])
        _ = ask(["a", "b"], pid: 4, wait: 100, at: 200)
        _ = ask(["c"], pid: 5, at: 200)
        _ = ask(["b", "c"], pid: 6, wait: 100, at: 200)
        _ = table.unlock(tokenHash: "t3", at: 210)
        _ = table.unlock(tokenHash: "t5", at: 210)
        #expect(grants(table.cancel(ticket: 4, at: 220)) == [6])
        #expect(table.cancel(ticket: 4, at: 220).isEmpty)
    }

    @Test func aLeaseEndsUnlessRenewed() throws {
        _ = ask(["a"], pid: 1, lease: 100)
        #expect(table.renew(tokenHash: "t1", at: 60)?.expires == 160)
        #expect(table.advance(to: 159).isEmpty)
        // Nobody brought the table to that time yet, and the lease is over all the same.
        #expect(table.renew(tokenHash: "t1", at: 160) == nil)
        #expect(table.unlock(tokenHash: "t1", at: 160) == nil)
        let lock = try #require(table.locks.first)
        #expect(table.advance(to: 160) == [.end(lock, .leaseExpired, by: nil)])
    }

    @Test func whatWasRenewedCanBeTakenBack() throws {
        _ = ask(["a"], pid: 1, lease: 100)
        let before = try #require(table.locks.first)
        #expect(table.renew(tokenHash: "t1", at: 60)?.expires == 160)
        table.takeBackRenewal(of: before)
        #expect(table.locks == [before])
    }

    @Test func renewingALockWithoutLeaseChangesNothing() {
        _ = ask(["a"])
        let before = table
        #expect(table.renew(tokenHash: "t1", at: 9) == before.locks.first)
        #expect(table == before)
        #expect(table.renew(tokenHash: "t9", at: 9) == nil)
    }

    @Test func aLateCallDoesWhatWasDueInItsOrder() {
        _ = ask(["a"], pid: 1, lease: 100)
        _ = ask(["a"], pid: 2, wait: 200, lease: 1000)
        _ = ask(["a"], pid: 3, wait: 300)
        let actions = table.advance(to: 900)
        #expect(grants(actions) == [2])
        #expect(table.lock(on: "a")?.expires == 1900)
        #expect(actions.last == .refuse(ticket: 3, .timeout(device: "a", holder: holder(2), queue: 0)))
    }

    @Test func takingOverEndsWholeLocksAndComesBeforeTheQueue() throws {
        _ = ask(["a", "b"], pid: 1)
        _ = ask(["c"], pid: 2)
        _ = ask(["b"], pid: 3, wait: 100)
        _ = ask(["a"], pid: 4, wait: 100)
        let lost = try #require(table.lock(on: "a"))
        let request = make(["a"], pid: 9)
        let actions = table.takeOver(request, at: 1)
        #expect(actions.first == .end(lost, .takenOver, by: holder(9)))
        #expect(grants(actions) == [5, 3])
        #expect(table.lock(on: "a")?.holder == holder(9) && table.lock(on: "c")?.holder == holder(2))
        #expect(table.waitingTickets == [4])
    }

    @Test func theEndOfAProcessEndsItsLocksAndWaitsButNotItsLeases() {
        _ = ask(["a"], pid: 1)
        _ = ask(["b"], pid: 1, lease: 1000)
        _ = ask(["a"], pid: 2, wait: 100)
        _ = ask(["a"], pid: 1, wait: 100)
        // Another process of that number.
        #expect(table.endHolder(pid: 1, startTime: 8, cause: .holderExited, at: 1).isEmpty)
        let actions = table.endHolder(pid: 1, startTime: 7, cause: .holderExited, at: 1)
        #expect(actions.contains(.refuse(ticket: 4, .holderEnded)))
        #expect(grants(actions) == [3])
        #expect(table.lock(on: "b") != nil)
    }

    @Test func anUnknownProcessIsNobody() {
        _ = ask(["a"], pid: 0)
        #expect(table.endHolder(pid: 0, startTime: nil, cause: .connectionLost, at: 1).isEmpty)
        #expect(table.lock(on: "a") != nil)
    }

    @Test func theEndOfADeviceEndsItsLockAndRefusesItsQueue() {
        _ = ask(["a", "b"], pid: 1)
        _ = ask(["a"], pid: 2, wait: 100)
        _ = ask(["b"], pid: 3, wait: 100)
        let actions = table.endDevice("a", at: 1)
        #expect(actions.contains(.refuse(ticket: 2, .deviceGone("a"))))
        #expect(grants(actions) == [3])
        #expect(LockTable.Refusal.deviceGone("a").error().reason == .deviceDisconnected)
    }

    @Test func shuttingDownAnswersEverybody() {
        _ = ask(["a"], pid: 1)
        _ = ask(["a"], pid: 2, wait: 100)
        let actions = table.shutDown(at: 1)
        #expect(actions.count == 2 && actions.first == .refuse(ticket: 2, .shuttingDown))
        #expect(table.locks.isEmpty && table.waitingTickets.isEmpty)
    }

    @Test func atMostSoManyWait() {
        _ = ask(["a"], pid: 1)
        for _ in 0..<LockTable.maximumWaiters { #expect(ask(["a"], pid: 2, wait: 100).isEmpty) }
        let ticket = tickets + 1
        #expect(
            ask(["b", "a"], pid: 3, wait: 100)
                == [.refuse(ticket: ticket, .tooManyWaiting(device: "a", limit: LockTable.maximumWaiters))])
        #expect(LockTable.Refusal.tooManyWaiting(device: "a", limit: 64).error().reason == .limitExceeded)
    }

    @Test func namingADeviceTwiceIsNamingItOnceAndNamingNoneIsRefused() {
        _ = ask(["a", "a"])
        #expect(table.locks.first?.devices == ["a"])
        #expect(ask([]) == [.refuse(ticket: 2, .noDevices)])
        let request = make([])
        #expect(table.takeOver(request, at: 0) == [.refuse(ticket: 3, .noDevices)])
    }

    @Test func authorization() throws {
        _ = ask(["a", "b"])
        let lock = try table.authorize(tokenHash: "t1", devices: ["b"]).get()
        #expect(lock.id == "l1")
        func error(_ token: String?, _ devices: [String]) -> BusError? {
            if case .failure(let error) = table.authorize(tokenHash: token, devices: devices) { error } else { nil }
        }
        #expect(error(nil, ["a"])?.reason == .lockRequired)
        #expect(error("t1", ["a", "c"])?.reason == .lockRequired)
        #expect(error("t1", ["a", "c"])?.data["device"] == "c")
        _ = table.unlock(tokenHash: "t1", at: 1)
        _ = ask(["c"])
        _ = ask(["a"])
        #expect(error("t1", ["a"])?.reason == .lockLost)
        #expect(error("t1", ["a"])?.data["fence"] == 3)
        #expect(error("t1", ["b"])?.data["fence"] == 3)
        #expect(error("t1", ["c"])?.data["fence"] == 2)
    }

    @Test func aNewNameKeepsLocksAndWaits() throws {
        _ = ask(["a", "b"], pid: 1)
        _ = ask(["a"], pid: 2, wait: 100)
        table.rename(device: "a", to: "front")
        #expect(table.lock(on: "a") == nil && table.lock(on: "front")?.devices == ["front", "b"])
        #expect(table.waiters(on: "front").map(\.ticket) == [2])
        table.rename(device: "front", to: "b")
        #expect(table.lock(on: "front")?.devices == ["front", "b"])
        #expect(grants(table.unlock(tokenHash: "t1", at: 1) ?? []) == [2])
    }

    @Test func aTableGoesOnFromWhatWasKept() {
        _ = ask(["a"])
        _ = ask(["b"])
        _ = table.unlock(tokenHash: "t2", at: 1)
        var next = LockTable(fence: table.fence, locks: table.locks)
        #expect(next == table)
        let request = make(["b"])
        _ = next.request(request, at: 2)
        #expect(next.lock(on: "b")?.fence == 3)
    }

    @Test func ofKeptLocksAtOddsTheNewestCounts() {
        func lock(_ fence: UInt64, _ devices: [String]) -> Lock {
            Lock(id: "l\(fence)", tokenHash: "t\(fence)", devices: devices, holder: holder(1), fence: fence, since: 0)
        }
        let table = LockTable(
            fence: .max, locks: [lock(5, ["a"]), lock(2, ["a", "b"]), lock(3, ["c"]), lock(4, []), lock(.max, ["d"])])
        #expect(table.locks.map(\.fence) == [3, 5])
        #expect(table.fence == UInt64(Int64.max))
    }

    @Test func limitsOfTimeDoNotOverflow() {
        _ = ask(["a"], lease: .max, at: .max - 1)
        #expect(table.locks.first?.expires == .max)
        _ = ask(["a"], wait: .max, at: .max - 1)
        #expect(table.nextDeadline == .max)
        _ = table.advance(to: .max)
        #expect(table.locks.isEmpty && table.waitingTickets.isEmpty)
    }
}
