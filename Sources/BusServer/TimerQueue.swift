/// What is to be done when, the earliest first; of what is due at the same time, what was put in first. A binary heap:
/// putting in and taking out cost the logarithm of their number, taking back costs nothing.
struct TimerQueue<Value> {
    private struct Entry {
        var time: Int64
        var number: UInt64

        func precedes(_ other: Entry) -> Bool { (time, number) < (other.time, other.number) }
    }

    /// What was taken back is still in it until its turn comes, or until it is most of what is there.
    private var heap: [Entry] = []
    private var values: [UInt64: Value] = [:]

    var count: Int { values.count }
    var isEmpty: Bool { values.isEmpty }
    /// Places that are taken up, those of what was taken back among them.
    var places: Int { heap.count }

    /// - Parameter number: unique among those that are in it, and rising.
    mutating func insert(_ value: Value, number: UInt64, at time: Int64) {
        values[number] = value
        heap.append(Entry(time: time, number: number))
        rise(heap.count - 1)
    }

    /// - Returns: false when there is none of that number.
    @discardableResult
    mutating func remove(number: UInt64) -> Bool {
        guard values.removeValue(forKey: number) != nil else { return false }
        if heap.count > 64, heap.count > 2 * values.count { sweep() }
        return true
    }

    /// The earliest time; nil when there is nothing.
    mutating func nextTime() -> Int64? {
        while let first = heap.first {
            if values[first.number] != nil { return first.time }
            removeFirst()
        }
        return nil
    }

    /// Takes out the first of what is due by then and has at most that number; nil when there is none.
    mutating func popDue(by time: Int64, upTo number: UInt64 = .max) -> Value? {
        while let first = heap.first, first.time <= time {
            guard let value = values[first.number] else {
                removeFirst()
                continue
            }
            guard first.number <= number else { return nil }
            removeFirst()
            values[first.number] = nil
            return value
        }
        return nil
    }

    private mutating func sweep() {
        heap.removeAll { values[$0.number] == nil }
        for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(index) }
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        sink(0)
    }

    private mutating func rise(_ start: Int) {
        var index = start
        while index > 0, heap[index].precedes(heap[(index - 1) / 2]) {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func sink(_ start: Int) {
        var index = start
        while true {
            var least = index
            let (left, right) = (2 * index + 1, 2 * index + 2)
            if left < heap.count, heap[left].precedes(heap[least]) { least = left }
            if right < heap.count, heap[right].precedes(heap[least]) { least = right }
            if least == index { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}
