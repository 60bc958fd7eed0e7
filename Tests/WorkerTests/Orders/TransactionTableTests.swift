import BusProtocol
import JSON
import Testing

@testable import Worker

@Suite("A ledger of changes") struct TransactionTableTests {
    private var ledger = TransactionTable<Int, String>(device: "cam0")

    @Test("knows each from its check to its end")
    mutating func steps() throws {
        #expect(throws: BusError.self) { _ = try ledger.beginApplying("a") }
        try ledger.checkPreparing("a")
        ledger.prepared("a", 1, isShared: false)
        try ledger.checkPreparing("a")
        if case .nothing = ledger.takeBack("a") {} else { Issue.record("it was not made") }
        let change = try ledger.beginApplying("a").change
        #expect(change == 1 && ledger.inDoubt == [])
        ledger.applied("a", "made", fence: 3, isShared: false)
        #expect(throws: BusError.self) { try ledger.checkPreparing("a") }
        #expect(ledger.knows("a") && ledger.newerFence(than: "a") == nil)
        ledger.raiseFence(to: 4)
        #expect(ledger.newerFence(than: "a") == 4)
        if case .undo("made") = ledger.takeBack("a") {} else { Issue.record("it was made") }
        if case .unknown = ledger.takeBack("a") {} else { Issue.record("it is taken back") }
        #expect(!ledger.knows("a"))
    }

    @Test("leaves those in doubt that others have part in, and gives the rest up")
    mutating func abandoned() throws {
        for (id, isShared) in [("own", false), ("shared", true)] {
            ledger.prepared(id, 1, isShared: isShared)
            _ = try ledger.beginApplying(id)
            #expect(ledger.inDoubt == (isShared ? [id] : []))
            ledger.applied(id, id, fence: 1, isShared: isShared)
        }
        ledger.prepared("failed", 1, isShared: true)
        _ = try ledger.beginApplying("failed")
        #expect(ledger.inDoubt == ["failed", "shared"])
        ledger.applied("failed", nil, fence: 9, isShared: true)
        #expect(ledger.newerFence(than: "own") == nil, "what could not be made has no fence")
        let left = ledger.abandon()
        #expect(left == ["own"] && ledger.inDoubt == ["shared"])
        #expect(!ledger.knows("failed") && ledger.knows("own") && ledger.knows("shared"))
        ledger.finish("shared")
        #expect(ledger.inDoubt == [])
    }

    @Test("takes no more than a few")
    mutating func bounded() throws {
        for id in 0..<8 { ledger.prepared("\(id)", id, isShared: false) }
        let error = #expect(throws: BusError.self) { try ledger.checkPreparing("8") }
        #expect(error?.data["limit"] == "transactions" && error?.data["maximum"] == 8)
        try ledger.checkPreparing("7")
    }
}
