import BusProtocol
import JSON

/// An order that only reads. Calls while it is under way share the next one, so that many clients cost a worker one
/// reading at a time.
final class SharedOrder {
    typealias Completion = (Result<JSONValue, BusError>) -> Void

    private let give: (@escaping Completion) -> Void
    private var waiting: [Completion] = []
    private var isUnderWay = false

    /// So many may wait for the next one.
    static let maximumWaiting = 64

    /// - Parameter give: gives the order, and calls its argument once.
    init(_ give: @escaping (@escaping Completion) -> Void) { self.give = give }

    /// - Returns: false when too many wait already; then the completion isn't called.
    func ask(_ completion: @escaping Completion) -> Bool {
        guard waiting.count < Self.maximumWaiting else { return false }
        waiting.append(completion)
        giveIfIdle()
        return true
    }

    private func giveIfIdle() {
        guard !isUnderWay, !waiting.isEmpty else { return }
        isUnderWay = true
        let served = waiting
        waiting = []
        give { [weak self] result in
            self?.isUnderWay = false
            for completion in served { completion(result) }
            self?.giveIfIdle()
        }
    }
}
