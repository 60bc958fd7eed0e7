/// The newest messages of a topic, numbered in their order, for clients that read at their own pace.
struct RecentMessages<Item> {
    private var items: [Item] = []
    /// The number of the newest; 0: none has come.
    private(set) var newest: UInt64 = 0

    /// - Parameter room: how many are kept, this one among them; at least 1.
    mutating func put(_ item: Item, room: Int) {
        newest += 1
        items.append(item)
        if items.count > max(1, room) { items.removeFirst(items.count - max(1, room)) }
    }

    /// The oldest that is newer than that number.
    ///
    /// - Returns: with its number, and whether others between them are not kept any more; nil: there is none yet.
    func next(after number: UInt64) -> (number: UInt64, item: Item, hasGap: Bool)? {
        guard number < newest, !items.isEmpty else { return nil }
        let oldest = newest - UInt64(items.count) + 1
        let found = max(number + 1, oldest)
        return (found, items[Int(found - oldest)], found > number + 1)
    }
}
