import Testing

@testable import Gateway

/// Which rendition makes room for another one.
@Suite struct RenditionTurnTests {
    private var wishes: [RenditionTurn.Wish] = []

    private static func topic(_ name: String) -> [UInt8] { Array(name.utf8) }

    /// Adds a rendition by its name, for users by their letters.
    private mutating func want(_ name: String, _ owners: String, refused: Bool = false) {
        wishes.append(
            RenditionTurn.Wish(
                topic: Self.topic(name), owners: Set(owners.map(String.init)), isRefused: refused,
                number: UInt64(wishes.count)))
    }

    private func expect(
        _ next: String?, _ behind: [String] = [], waiting: [String] = [], location: SourceLocation = #_sourceLocation
    ) {
        let turn = RenditionTurn(among: wishes.reversed())
        #expect(turn?.next == next.map(Self.topic), sourceLocation: location)
        #expect(turn?.behind ?? [] == behind.map(Self.topic), sourceLocation: location)
        #expect(turn?.waiting ?? [] == Set(waiting.map(Self.topic)), sourceLocation: location)
    }

    @Test mutating func `who has most gives up the newest for who has none`() {
        for name in ["a1", "a2", "a3"] { want(name, "a") }
        want("b1", "b")
        expect(nil)
        want("c1", "c", refused: true)
        expect("c1", ["a3"], waiting: ["c1"])
    }

    @Test mutating func `nobody gives way for who would have no less then`() {
        want("a1", "a")
        want("b1", "b")
        want("c1", "c", refused: true)
        expect(nil)
        want("a2", "a")
        want("b2", "b", refused: true)
        // One more for b would be one less for a.
        expect("c1", ["b2", "a2"], waiting: ["c1"])
    }

    @Test mutating func `those who wait have their turns in order, before who has something`() {
        want("a1", "a")
        want("a2", "a")
        want("a3", "a", refused: true)
        want("a4", "a")
        want("b1", "b")
        want("b2", "b", refused: true)
        want("c1", "c", refused: true)
        want("d1", "d", refused: true)
        expect("c1", ["d1", "b2", "a3", "a4"], waiting: ["c1", "d1", "b2"])
    }

    @Test mutating func `what others want too is nobody's alone, and stays`() {
        for name in ["1", "2", "3"] { want(name, "ab") }
        want("a1", "a")
        want("c1", "c", refused: true)
        expect(nil)
        want("a2", "a")
        want("nobody", "", refused: true)
        expect("c1", ["nobody", "a2"], waiting: ["c1"])
    }
}
