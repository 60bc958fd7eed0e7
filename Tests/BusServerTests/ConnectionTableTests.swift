import Testing

@testable import BusServer

@Suite final class ConnectionTableTests {
    private var table = ConnectionTable(perUser: 9, total: 9)

    private func open(_ descriptor: Int32, uid: UInt32, pid: Int32) -> Bool {
        table.open(descriptor: descriptor, uid: uid, pid: pid)
    }

    private func close(_ descriptor: Int32) -> Bool { table.close(descriptor: descriptor) }

    @Test func eachUserHasALimitAndAllTogether() {
        table = ConnectionTable(perUser: 2, total: 3)
        #expect(open(5, uid: 1, pid: 10))
        #expect(open(6, uid: 1, pid: 11))
        #expect(!open(7, uid: 1, pid: 10))
        #expect(open(7, uid: 2, pid: 12))
        #expect(!open(8, uid: 3, pid: 13))
        #expect(table.count == 3 && table.count(uid: 1) == 2 && table.count(pid: 10) == 1)
        // One that was refused was never counted.
        #expect(!close(8))
        _ = close(5)
        #expect(open(8, uid: 3, pid: 13))
    }

    @Test func `who has the connections of others has no limit but that of all`() {
        table = ConnectionTable(perUser: 1, total: 3)
        table.unbounded = 7
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
        #expect(table.count == 0 && table.count(uid: 1) == 0)
    }

    @Test func aDescriptorThatComesAgainCountsOnce() {
        table = ConnectionTable(perUser: 1, total: 9)
        #expect(open(5, uid: 1, pid: 10))
        #expect(open(5, uid: 1, pid: 11))
        #expect(table.count(pid: 10) == 0 && table.count(pid: 11) == 1)
        #expect(open(5, uid: 2, pid: 12))
        #expect(table.count(uid: 1) == 0)
    }

    @Test func newLimitsLeaveWhatIsOpen() {
        for descriptor in 0..<5 { _ = open(Int32(descriptor), uid: 1, pid: 1) }
        table.setLimits(perUser: 2, total: 9)
        #expect(table.count == 5)
        #expect(!open(9, uid: 1, pid: 1))
        #expect(open(9, uid: 2, pid: 2))
    }
}
