import Synchronization
import Testing

@testable import Gateway

/// Which connections are accepted, and which ones have to go for them.
@Suite struct ConnectionLimitTests {
    private let limit = ConnectionLimit(total: 8, perAddress: 4)
    private let ended = Ended()

    /// Names of the connections that had to go.
    private final class Ended: Sendable {
        private let names = Mutex<[String]>([])

        var all: [String] { names.withLock { $0 } }
        func add(_ name: String) { names.withLock { $0.append(name) } }
    }

    private func enter(_ address: String, _ name: String = "", isBusy: Bool = true) -> ConnectionLimit.Place? {
        guard let place = limit.enter(address, end: { [ended] in ended.add(name) }) else { return nil }
        // Each of another user.
        if isBusy { #expect(limit.set(place, busyFor: "\(ObjectIdentifier(place))")) }
        return place
    }

    @Test func `each address has so many, and some are kept for this machine`() throws {
        let first = try (0..<4).map { _ in try #require(enter("192.0.2.1")) }
        #expect(enter("192.0.2.1") == nil)
        #expect((0..<2).allSatisfy { _ in enter("192.0.2.2") != nil } && enter("192.0.2.2") == nil)
        let local = try #require(enter("127.0.0.1"))
        #expect(enter("::1") != nil && enter("127.0.0.1") == nil)
        // Who sits here takes nothing from others by that than what is more than kept.
        limit.leave(first[0])
        #expect(enter("192.0.2.3") == nil)
        limit.leave(local)
        limit.leave(first[1])
        #expect(enter("192.0.2.3") != nil && enter("192.0.2.3") == nil && ended.all.isEmpty)
    }

    @Test func `the one that has been idle for longest makes room for a new one of its address`() throws {
        let places = try (0..<4).map { try #require(enter("192.0.2.1", "\($0)", isBusy: $0 < 2)) }
        // Later than the others.
        _ = limit.set(places[0], busyFor: nil)
        #expect(enter("192.0.2.1") != nil && ended.all == ["2"])
        #expect(enter("192.0.2.1") != nil && ended.all == ["2", "3"])
        #expect(enter("192.0.2.1") != nil && ended.all == ["2", "3", "0"])
        #expect(enter("192.0.2.1") == nil)
        // It has no place any more to leave.
        limit.leave(places[2])
        #expect(enter("192.0.2.1") == nil)
    }

    @Test func `those that say nothing end neither who will ask again nor who waits for an answer`() throws {
        // Asked once, and may ask again; or was not let in, and waits to be told so.
        let asked = try #require(enter("192.0.2.1", "asked", isBusy: false))
        _ = limit.set(asked, busyFor: nil)
        for number in 0..<100 { #expect(enter("192.0.2.1", "\(number)", isBusy: false) != nil) }
        #expect(ended.all == (0..<97).map { "\($0)" })
    }

    @Test func `those that have asked and are more do not end who has just come`() throws {
        for number in 0..<100 {
            let place = try #require(enter("192.0.2.1", "\(number)", isBusy: false))
            _ = limit.set(place, busyFor: nil)
            if number == 3 { #expect(enter("192.0.2.1", "fresh", isBusy: false) != nil) }
        }
        #expect(ended.all == (0..<97).map { "\($0)" })
    }

    @Test func `a user has half of the connections of an address, and the others there have the rest`() throws {
        func enter(_ owner: String?, from address: String = "192.0.2.1") throws -> (ConnectionLimit.Place, Bool) {
            let entered = limit.enter(address, end: {})
            let place = try #require(entered)
            return (place, limit.set(place, busyFor: owner))
        }
        let first = try enter("Ada")
        #expect(try first.1 && enter("Ada", from: "192.0.2.2").1)
        // The third is refused, and makes room for who comes next. It may be of another user then.
        let third = try enter("Ada")
        #expect(!third.1)
        for _ in 0..<2 { #expect(limit.set(third.0, busyFor: "Bo")) }
        #expect(try !enter("Ada").1 && !enter("Ada").1 && enter("Bo").1 && !enter("Bo").1)
        // Whatever ends one of a user's makes room for another one.
        #expect(limit.set(first.0, busyFor: nil))
        #expect(limit.set(first.0, busyFor: "Ada") && !limit.set(third.0, busyFor: "Ada"))
        limit.leave(first.0)
        #expect(limit.set(third.0, busyFor: "Ada"))
    }

    @Test func `where all are taken, one of the address that has most makes room`() throws {
        #expect(enter("192.0.2.1", "a", isBusy: false) != nil)
        for name in ["b", "c", "d"] { #expect(enter("192.0.2.2", name, isBusy: false) != nil) }
        #expect(enter("192.0.2.3", "e", isBusy: false) != nil && enter("192.0.2.4", "f", isBusy: false) != nil)
        #expect(enter("192.0.2.5") != nil && ended.all == ["b"])
        // Who is here needs to make room for nobody who is not.
        #expect(enter("127.0.0.1", "here", isBusy: false) != nil && enter("::1", isBusy: false) != nil)
        for number in 6..<11 { #expect(enter("192.0.2.\(number)") != nil) }
        #expect(enter("192.0.2.11") == nil && !ended.all.contains("here"))
    }
}
