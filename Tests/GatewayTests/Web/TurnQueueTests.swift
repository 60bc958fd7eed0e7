import Testing

@testable import Gateway

/// Whose request goes next.
@Suite struct TurnQueueTests {
    @Test func `who has fewest under way comes first, and nobody has more than a share`() {
        var turns = TurnQueue(total: 4, perOwner: 2)
        func add(_ names: String...) { for name in names { turns.add(Array(name.utf8), of: String(name.prefix(1))) } }
        func next() -> String? { turns.next().map { String(decoding: $0, as: UTF8.self) } }
        add("a1", "a2", "a3", "b1")
        #expect([next(), next(), next(), next()] == ["a1", "b1", "a2", nil])
        add("c1", "c2")
        #expect(next() == "c1" && next() == nil)
        // All places are taken; the one that gets free is nobody's by right.
        turns.remove(Array("b1".utf8))
        #expect(next() == "c2" && next() == nil)
        turns.remove(Array("a1".utf8))
        turns.remove(Array("a3".utf8))
        #expect(!turns.isWaiting(Array("a3".utf8)) && next() == nil)
        add("a4")
        #expect(turns.isWaiting(Array("a4".utf8)) && next() == "a4")
    }
}
