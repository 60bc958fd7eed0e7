/// Which of the waiting requests of many users goes next, when only so many may be under way. A user has a share of the
/// places at most, and the one with the fewest under way comes first.
struct TurnQueue {
    private var waiting: [(tag: [UInt8], owner: String)] = []
    /// Whose those are that are under way.
    private var owners: [[UInt8]: String] = [:]
    private var counts: [String: Int] = [:]
    private let total: Int
    private let perOwner: Int

    /// - Parameters:
    ///   - total: requests that may be under way.
    ///   - perOwner: the same of one user.
    init(total: Int, perOwner: Int) {
        self.total = total
        self.perOwner = perOwner
    }

    /// One more waits.
    mutating func add(_ tag: [UInt8], of owner: String) { waiting.append((tag, owner)) }

    /// Whether it has not gone yet.
    func isWaiting(_ tag: [UInt8]) -> Bool { waiting.contains { $0.tag == tag } }

    /// The one that goes now; nil: none does.
    mutating func next() -> [UInt8]? {
        guard owners.count < total else { return nil }
        let first = waiting.indices.min { count(waiting[$0].owner) < count(waiting[$1].owner) }
        guard let first, count(waiting[first].owner) < perOwner else { return nil }
        let (tag, owner) = waiting.remove(at: first)
        owners[tag] = owner
        counts[owner, default: 0] += 1
        return tag
    }

    /// It is answered, or nobody waits for it any more.
    mutating func remove(_ tag: [UInt8]) {
        guard let owner = owners.removeValue(forKey: tag) else { return waiting.removeAll { $0.tag == tag } }
        let left = count(owner) - 1
        counts[owner] = left > 0 ? left : nil
    }

    private func count(_ owner: String) -> Int { counts[owner] ?? 0 }
}
