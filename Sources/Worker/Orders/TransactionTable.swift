import BusProtocol
import JSON

/// The changes of a device that are under way: each is checked, then made, then finished or taken back.
///
/// A pure value: it gets what happens, and decides what may be done next.
struct TransactionTable<Prepared, Applied> {
    private enum Transaction {
        case prepared(Prepared, isShared: Bool)
        case applied(Applied, fence: UInt64, isShared: Bool)
    }

    /// What is to be done to take one back.
    enum Reversal {
        case unknown
        /// It was not made.
        case nothing
        case undo(Applied)
    }

    private let device: String
    private var transactions: [String: Transaction] = [:]
    /// The one that is being made now, if other devices change with this one.
    private var applying: String?
    /// Of all that was made.
    private var highestFence: UInt64 = 0

    private static var maximum: Int { 8 }

    init(device: String) { self.device = device }

    /// Changes over several devices that are made here, or are being made, and whose end was not ordered.
    var inDoubt: [String] {
        let applied = transactions.filter { if case .applied(_, _, isShared: true) = $0.value { true } else { false } }
        return Set(applied.keys).union(applying.map { [$0] } ?? []).sorted()
    }

    /// The error for one that an earlier process of this device was asked to check.
    var unknown: BusError {
        BusError(
            .workerCrashed, "The worker of \(device) was started again before the change was made; try again.",
            ["device": .string(device)])
    }

    /// Whether it is checked or made.
    func knows(_ id: String) -> Bool { transactions[id] != nil }

    // MARK: From one step to the next

    /// - Throws: `limitExceeded` {limit: "transactions", maximum}; `invalidParams` for one that is made already.
    func checkPreparing(_ id: String) throws(BusError) {
        guard transactions[id] != nil || transactions.count < Self.maximum else {
            throw BusError(
                .limitExceeded, "Too many changes of \(device) are under way; finish them first.",
                ["limit": "transactions", "maximum": JSONValue(Self.maximum)])
        }
        if case .applied? = transactions[id] {
            throw .invalidParams("transaction", "'\(id)' has been applied; finish it first")
        }
    }

    /// It is checked, and can be made.
    mutating func prepared(_ id: String, _ change: Prepared, isShared: Bool) {
        transactions[id] = .prepared(change, isShared: isShared)
    }

    /// It is being made from now on.
    ///
    /// - Throws: ``unknown`` for one that is not checked.
    mutating func beginApplying(_ id: String) throws(BusError) -> (change: Prepared, isShared: Bool) {
        guard case .prepared(let change, let isShared)? = transactions[id] else {
            throw unknown
        }
        applying = isShared ? id : nil
        return (change, isShared)
    }

    /// It is made.
    ///
    /// - Parameter change: nil: it could not be.
    mutating func applied(_ id: String, _ change: Applied?, fence: UInt64, isShared: Bool) {
        applying = nil
        guard let change else { return }
        transactions[id] = .applied(change, fence: fence, isShared: isShared)
        raiseFence(to: fence)
    }

    /// Something was made under that fence.
    mutating func raiseFence(to fence: UInt64) { highestFence = max(highestFence, fence) }

    /// The fence of something that was made after that one; nil: it is the last.
    func newerFence(than id: String) -> UInt64? {
        guard case .applied(_, let fence, _)? = transactions[id], fence < highestFence else { return nil }
        return highestFence
    }

    /// It is taken back. One that is made is not known any more then.
    mutating func takeBack(_ id: String) -> Reversal {
        switch transactions[id] {
        case nil: return .unknown
        case .prepared?: return .nothing
        case .applied(let change, _, _)?:
            transactions[id] = nil
            return .undo(change)
        }
    }

    /// It is over; what was kept for it can go.
    mutating func finish(_ id: String) { transactions[id] = nil }

    /// Their coordinator has ended: transactions that are only checked are over. Those that include other devices stay
    /// in doubt.
    ///
    /// - Returns: those that are to be taken back.
    mutating func abandon() -> [String] {
        var left: [String] = []
        for (id, transaction) in transactions {
            switch transaction {
            case .prepared: transactions[id] = nil
            case .applied(_, _, isShared: true): break
            case .applied(_, _, isShared: false): left.append(id)
            }
        }
        return left
    }
}
