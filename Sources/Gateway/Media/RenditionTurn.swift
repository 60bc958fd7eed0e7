/// Which rendition of a device makes room for another one, when the bus makes no more of them for the gateway.
///
/// For the bus the gateway is one client. Among its own clients a user with at least two renditions more than another
/// one, who gets none, gives up the newest.
struct RenditionTurn: Hashable {
    /// A rendition that somebody wants, and that is not made for everybody in any case.
    struct Wish: Hashable {
        let topic: [UInt8]
        /// The users who want it.
        let owners: Set<String>
        /// The bus makes too many already.
        let isRefused: Bool
        /// The later, the higher: the bus makes the one that has waited longest.
        let number: UInt64

        /// What others want too costs its user nothing.
        fileprivate var onlyOwner: String? { owners.count == 1 ? owners.first : nil }
    }

    /// Whose turn it is.
    let next: [UInt8]
    /// All whose turn comes, unless others leave before.
    let waiting: Set<[UInt8]>
    /// What has to wait behind it, in this order: the other refused ones, and last the one that gives way.
    let behind: [[UInt8]]

    /// - Returns: nil: nobody has to give way.
    init?(among wishes: [Wish]) {
        var counts: [String: Int] = [:]
        for wish in wishes where !wish.isRefused { if let owner = wish.onlyOwner { counts[owner, default: 0] += 1 } }
        func least(_ wish: Wish) -> Int { wish.owners.map { counts[$0] ?? 0 }.min() ?? .max }
        func has(_ wish: Wish) -> Int { wish.onlyOwner.flatMap { counts[$0] } ?? 0 }
        let refused = wishes.filter(\.isRefused).sorted { (least($0), $0.number) < (least($1), $1.number) }
        let made = wishes.filter { !$0.isRefused }
        guard let first = refused.first, let last = made.max(by: { (has($0), $0.number) < (has($1), $1.number) }),
            !first.owners.isEmpty, has(last) >= least(first) + 2
        else { return nil }
        next = first.topic
        waiting = Set(refused.filter { !$0.owners.isEmpty && has(last) >= least($0) + 2 }.map(\.topic))
        behind = refused.dropFirst().map(\.topic) + [last.topic]
    }
}
