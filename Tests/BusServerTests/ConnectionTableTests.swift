import Testing

@testable import CaptureCore

@Suite final class ConnectionLedgerTests {
    private var ledger = ConnectionLedger(perUser: 9, total: 9)

    private func open(_ descriptor: Int32, uid: UInt32, pid: Int32) -> Bool {
        ledger.open(descriptor: descriptor, uid: uid, pid: pid)
    }

    private func close(_ descriptor: Int32) -> Bool { ledger.close(descriptor: descriptor) }

    @Test func eachUserHasALimitAndAllTogether() {
        ledger = ConnectionLedger(perUser: 2, total: 3)
        #expect(open(5, uid: 1, pid: 10))
        #expect(open(6, uid: 1, pid: 11))
        #expect(!open(7, uid: 1, pid: 10))
        #expect(open(7, uid: 2, pid: 12))
        #expect(!open(8, uid: 3, pid: 13))
        #expect(ledger.count == 3 && ledger.count(uid: 1) == 2 && ledger.count(pid: 10) == 1)
        // One that was refused was never counted.
        #expect(!close(8))
        _ = close(5)
        #expect(open(8, uid: 3, pid: 13))
    }

    @Test func `who has the connections of others has no limit but that of all`() {
        ledger = ConnectionLedger(perUser: 1, total: 3)
        ledger.unbounded = 7
        #expect(open(5, uid: 7, pid: 10) && open(6, uid: 7, pid: 10))
        #expect(open(7, uid: 1, pid: 11) && !open(8, uid: 1, pid: 11))
        #expect(!open(8, uid: 7, pid: 10))
    }

    @Test func theLastConnectionOfAProcessIsTold() {
        _ = open(5, uid: 1, pid: 10)
        _ = open(6, uid: 1, pid: 10)
        _ = open(7, uid: 1, pid: 11)
        #expect(!close(5))
        #expect(close(6))
        #expect(!close(6))
        #expect(close(7))
        // Of processes that aren't known here nobody can say.
        _ = open(8, uid: 1, pid: 0)
        #expect(!close(8))
        #expect(ledger.count == 0 && ledger.count(uid: 1) == 0)
    }

    @Test func aDescriptorThatComesAgainCountsOnce() {
        ledger = ConnectionLedger(perUser: 1, total: 9)
        #expect(open(5, uid: 1, pid: 10))
        #expect(open(5, uid: 1, pid: 11))
        #expect(ledger.count(pid: 10) == 0 && ledger.count(pid: 11) == 1)
        #expect(open(5, uid: 2, pid: 12))
        #expect(ledger.count(uid: 1) == 0)
    }

    @Test func newLimitsLeaveWhatIsOpen() {
        for descriptor in 0..<5 { _ = open(Int32(descriptor), uid: 1, pid: 1) }
        ledger.setLimits(perUser: 2, total: 9)
        #expect(ledger.count == 5)
        #expect(!open(9, uid: 1, pid: 1))
        #expect(open(9, uid: 2, pid: 2))
    }
}
