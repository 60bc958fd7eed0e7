/// A dictionary that forgets its oldest entry when it is full.
struct BoundedDictionary<Key: Hashable, Value> {
    private var values: [Key: Value] = [:]
    private var order: [Key] = []
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    subscript(key: Key) -> Value? {
        get { values[key] }
        set {
            if values[key] == nil, newValue != nil {
                order.append(key)
                if order.count > limit { values[order.removeFirst()] = nil }
            } else if newValue == nil {
                order.removeAll { $0 == key }
            }
            values[key] = newValue
        }
    }
}
