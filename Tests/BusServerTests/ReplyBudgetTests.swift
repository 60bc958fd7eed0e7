import BusProtocol
import JSON
import LinuxIO
import Testing
import ZeroMQ

@testable import BusServer

@Suite struct ReplyBudgetTests {
    private let budget = ReplyBudget(maximum: 100, maximumOfUser: 150)
    private let one: [UInt8] = [1]
    private let two: [UInt8] = [2]
    private let three: [UInt8] = [3]

    private func message(_ bytes: Int, _ connection: [UInt8], uid: UInt32 = 1000) throws -> Message {
        try budget.message([UInt8](repeating: 7, count: bytes), connection, uid: uid)
    }

    @Test func `replies count until they are sent, for their connection and its user`() throws {
        var held = [try message(60, one)]
        #expect(held[0].count == 60 && held[0].bytes.allSatisfy { $0 == 7 })
        #expect(budget.hasRoom(40, one, uid: 1000) && !budget.hasRoom(41, one, uid: 1000))
        held.append(try message(60, two))
        // Both are the same user's.
        #expect(!budget.hasRoom(31, three, uid: 1000) && budget.hasRoom(30, three, uid: 1000))
        #expect(budget.hasRoom(100, three, uid: 1001))
        held.removeFirst()
        #expect(budget.hasRoom(90, three, uid: 1000))
        #expect(budget.refusal.data["limit"] == "replyBytes")
    }

    @Test func `one reply may be larger than the budget`() throws {
        #expect(budget.hasRoom(1000, one, uid: 1000))
        let held = try message(1000, one)
        #expect(!budget.hasRoom(1, one, uid: 1000) && !budget.hasRoom(1, two, uid: 1000))
        withExtendedLifetime(held) {}
    }
}
