/// Who has which slot of a ring, and which one may be filled next: a value, without memory or time.
///
/// A slot is free, being filled, or published. A published one stays until at least ``keep`` frames have been published
/// after it and nobody it was lent to has it any more. With `filling + keep + lending` slots there is always one to be
/// filled when fewer than `filling` are being filled.
///
/// Besides, the owner may hold published slots for work of its own. When that takes more than what is not lent just
/// now, fewer are filled at a time, but never fewer than ``fillingAtLeast``.
public struct RingLedger: Sendable {
    private enum State: Hashable, Sendable {
        case free
        case filling
        /// The frame's number in the ring, from 1.
        case published(UInt64)
    }

    /// Slots that may be filled at a time.
    public let filling: Int
    /// Frames that follow a published one at least before its slot is filled again.
    public let keep: Int
    /// Slots that may be lent at a time.
    public let lending: Int
    private var states: [State]
    private var uses: [Int]
    private var holds: [Int]
    /// Slots that are being filled.
    public private(set) var fillingCount = 0
    /// Slots that are lent.
    public private(set) var lentCount = 0
    /// Frames that were published: the number of the newest.
    public private(set) var published: UInt64 = 0

    public init(filling: Int, keep: Int, lending: Int) {
        self.filling = max(1, filling)
        self.keep = max(1, keep)
        self.lending = max(0, lending)
        let slots = self.filling + self.keep + self.lending
        states = Array(repeating: .free, count: slots)
        uses = Array(repeating: 0, count: slots)
        holds = uses
    }

    /// Slots that can be filled at a time whatever is lent and held.
    public var fillingAtLeast: Int { min(filling, 2) }

    public var slots: Int { states.count }

    /// The number of the frame in a slot; nil for a slot that holds none.
    public func number(in slot: Int) -> UInt64? {
        guard states.indices.contains(slot), case .published(let number) = states[slot] else { return nil }
        return number
    }

    /// Takes a slot to be filled: one that was never used, else the one with the oldest frame.
    ///
    /// - Returns: nil while so many are being filled, or none may be overwritten.
    public mutating func take() -> Int? {
        guard fillingCount < filling else { return nil }
        var best: (slot: Int, number: UInt64)?
        for slot in states.indices where uses[slot] == 0 && holds[slot] == 0 {
            switch states[slot] {
            case .filling: continue
            case .free:
                best = (slot, 0)
            case .published(let number):
                guard published - number >= UInt64(keep), number < best?.number ?? .max else { continue }
                best = (slot, number)
            }
            if best?.number == 0 { break }
        }
        guard let best else { return nil }
        states[best.slot] = .filling
        fillingCount += 1
        return best.slot
    }

    /// A slot was not filled after all.
    ///
    /// - Returns: false if it was not being filled.
    @discardableResult
    public mutating func putBack(_ slot: Int) -> Bool {
        guard states.indices.contains(slot), states[slot] == .filling else { return false }
        states[slot] = .free
        fillingCount -= 1
        return true
    }

    /// A slot was filled and is there for readers.
    ///
    /// - Returns: the frame's number; nil if the slot was not being filled.
    public mutating func publish(_ slot: Int) -> UInt64? {
        guard states.indices.contains(slot), states[slot] == .filling else { return nil }
        published += 1
        states[slot] = .published(published)
        fillingCount -= 1
        return published
    }

    /// Lends a published slot, once more if it is lent already: it is not filled again until each has been given back.
    ///
    /// - Returns: false for a slot without a frame, and when enough others are lent.
    public mutating func lend(_ slot: Int) -> Bool {
        guard number(in: slot) != nil, uses[slot] > 0 || lentCount < lending, mayGoOut(slot) else { return false }
        if uses[slot] == 0 { lentCount += 1 }
        uses[slot] += 1
        return true
    }

    /// A borrower is done with a slot.
    ///
    /// - Returns: false if it was not lent.
    @discardableResult
    public mutating func giveBack(_ slot: Int) -> Bool {
        guard uses.indices.contains(slot), uses[slot] > 0 else { return false }
        uses[slot] -= 1
        if uses[slot] == 0 { lentCount -= 1 }
        return true
    }

    /// Holds a published slot, once more if it is held already: it is not filled again until each hold is over.
    ///
    /// - Returns: false for a slot without a frame, and when the device needs it.
    public mutating func hold(_ slot: Int) -> Bool {
        guard number(in: slot) != nil, mayGoOut(slot) else { return false }
        holds[slot] += 1
        return true
    }

    /// A hold is over.
    ///
    /// - Returns: false if the slot was not held.
    @discardableResult
    public mutating func letGo(_ slot: Int) -> Bool {
        guard holds.indices.contains(slot), holds[slot] > 0 else { return false }
        holds[slot] -= 1
        return true
    }

    // Lent and held together leave the device enough.
    private func mayGoOut(_ slot: Int) -> Bool {
        guard uses[slot] == 0, holds[slot] == 0 else { return true }
        let out = states.indices.reduce(0) { $0 + (uses[$1] > 0 || holds[$1] > 0 ? 1 : 0) }
        return out < lending + filling - fillingAtLeast
    }

    /// How often a slot is lent.
    public func uses(of slot: Int) -> Int { uses.indices.contains(slot) ? uses[slot] : 0 }
}
