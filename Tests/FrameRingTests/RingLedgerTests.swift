import FrameRing
import Testing

/// Which slot may be filled when.
struct RingLedgerTests {
    @Test("A frame stays for at least keep frames, also while everything that may be lent is")
    func keep() throws {
        let ledger = Ledger(filling: 4, keep: 5, lending: 4)
        var slots: [Int] = []
        for _ in 0..<4 { slots.append(try #require(ledger.take())) }
        #expect(ledger.take() == nil)
        var published: [(slot: Int, number: UInt64)] = []
        for frame in 1...200 {
            let slot = slots.removeFirst()
            let number = try #require(ledger.publish(slot))
            #expect(number == UInt64(frame))
            published.append((slot, number))
            if [3, 9, 10, 40].contains(frame) { #expect(ledger.lend(slot)) }
            let next = try #require(ledger.take(), "a slot is always there to be filled")
            for (slot, number) in published where ledger.number(in: slot) != number {
                #expect(ledger.published - number >= 5, "frame \(number) was overwritten too early")
            }
            published.removeAll { ledger.number(in: $0.slot) != $0.number }
            slots.append(next)
        }
        #expect(ledger.lentCount == 4)
    }

    @Test("What is lent is not filled, and no more is lent than may be")
    func lending() throws {
        let ledger = Ledger(filling: 1, keep: 1, lending: 1)
        func publish() throws -> Int {
            let slot = try #require(ledger.take())
            #expect(ledger.publish(slot) != nil)
            return slot
        }
        let first = try publish()
        #expect(ledger.lend(first) && ledger.lend(first))
        let second = try publish()
        #expect(!ledger.lend(second))
        for _ in 0..<10 { #expect(try publish() != first) }
        #expect(ledger.giveBack(first))
        for _ in 0..<10 { #expect(try publish() != first) }
        #expect(ledger.giveBack(first))
        #expect(!ledger.giveBack(first))
        #expect(try publish() == first)
    }

    @Test("What is held is not filled, and the device always has two slots")
    func holding() throws {
        let ledger = Ledger(filling: 4, keep: 4, lending: 4)
        var filling: [Int] = []
        func fill() { while let slot = ledger.take() { filling.append(slot) } }
        func publish() throws -> Int {
            fill()
            let slot = filling.removeFirst()
            #expect(ledger.publish(slot) != nil)
            return slot
        }
        #expect(!ledger.hold(0) && !ledger.letGo(0) && !ledger.hold(-1) && !ledger.letGo(99))
        // Readers' messages that nobody takes.
        var out: [Int] = []
        for _ in 0..<4 {
            let slot = try publish()
            #expect(ledger.lend(slot))
            out.append(slot)
        }
        for _ in 0..<2 {
            let slot = try publish()
            #expect(!ledger.lend(slot))
            #expect(ledger.hold(slot) && ledger.hold(slot))
            out.append(slot)
        }
        for _ in 0..<40 {
            let slot = try publish()
            #expect(!out.contains(slot))
            #expect(!ledger.hold(slot))
            // One that is out already costs nothing more.
            #expect(ledger.hold(out[0]) && ledger.letGo(out[0]))
            fill()
            #expect(filling.count >= 2)
        }
        for slot in out.suffix(2) { #expect(ledger.letGo(slot) && ledger.letGo(slot) && !ledger.letGo(slot)) }
        for _ in 0..<8 { _ = try publish() }
        fill()
        #expect(filling.count == 4)
    }

    @Test("What makes no sense changes nothing")
    func nonsense() throws {
        let ledger = Ledger(filling: 2, keep: 2, lending: 1)
        #expect(ledger.publish(0) == nil && ledger.publish(99) == nil && ledger.publish(-1) == nil)
        #expect(!ledger.putBack(0) && !ledger.lend(0) && !ledger.giveBack(0) && !ledger.lend(7) && !ledger.giveBack(-3))
        let slot = try #require(ledger.take())
        #expect(!ledger.lend(slot))
        #expect(ledger.putBack(slot))
        #expect(!ledger.putBack(slot))
        #expect(ledger.take() == slot)
    }

    @Test("Whatever happens in whatever order, the rules hold", arguments: 1...40)
    func property(seed: UInt64) throws {
        var random = Generator(state: seed)
        let filling = Int.random(in: 1...5, using: &random)
        let keep = Int.random(in: 1...6, using: &random)
        let lending = Int.random(in: 0...4, using: &random)
        let ledger = Ledger(filling: filling, keep: keep, lending: lending)
        var taken: Set<Int> = []
        var frames: [Int: UInt64] = [:]
        var loans: [Int] = []
        for _ in 0..<2000 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1:
                let slot = ledger.take()
                #expect((slot != nil) == (taken.count < filling))
                guard let slot else { continue }
                #expect(!taken.contains(slot) && !loans.contains(slot))
                if let old = frames[slot] { #expect(ledger.published - old >= UInt64(keep)) }
                if frames.count + taken.count < ledger.slots { #expect(frames[slot] == nil, "the free one first") }
                frames[slot] = nil
                taken.insert(slot)
            case 2, 3:
                guard let slot = taken.randomElement(using: &random) else { continue }
                taken.remove(slot)
                let number: UInt64 = try #require(ledger.publish(slot))
                frames[slot] = number
            case 4:
                guard let slot = frames.keys.sorted().randomElement(using: &random) else { continue }
                let mayLend = loans.contains(slot) || Set(loans).count < lending
                #expect(ledger.lend(slot) == mayLend)
                if mayLend { loans.append(slot) }
            default:
                if !loans.isEmpty {
                    #expect(ledger.giveBack(loans.remove(at: Int.random(in: loans.indices, using: &random))))
                }
                if Bool.random(using: &random), let slot = taken.randomElement(using: &random) {
                    taken.remove(slot)
                    #expect(ledger.putBack(slot))
                }
            }
            #expect(ledger.lentCount == Set(loans).count && ledger.fillingCount == taken.count)
            for (slot, number) in frames { #expect(ledger.number(in: slot) == number) }
        }
    }
}

/// A ledger that expectations may change.
private final class Ledger {
    private var value: RingLedger

    init(filling: Int, keep: Int, lending: Int) {
        value = RingLedger(filling: filling, keep: keep, lending: lending)
    }

    var slots: Int { value.slots }
    var published: UInt64 { value.published }
    var lentCount: Int { value.lentCount }
    var fillingCount: Int { value.fillingCount }
    func number(in slot: Int) -> UInt64? { value.number(in: slot) }
    func take() -> Int? { value.take() }
    func publish(_ slot: Int) -> UInt64? { value.publish(slot) }
    func putBack(_ slot: Int) -> Bool { value.putBack(slot) }
    func lend(_ slot: Int) -> Bool { value.lend(slot) }
    func giveBack(_ slot: Int) -> Bool { value.giveBack(slot) }
    func hold(_ slot: Int) -> Bool { value.hold(slot) }
    func letGo(_ slot: Int) -> Bool { value.letGo(slot) }
}

/// SplitMix64: the same numbers for the same seed.
struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
