import BusProtocol
import CaptureCore
import JSON
import LinuxIO
import Logging

/// Carries out single orders for an ``OrderQueue``.
protocol OrderHandler: AnyObject {
    /// It is the next, if nothing comes in before it.
    func willCarryOut(_ order: WorkerOrder)
    /// Does it, and calls the last argument once.
    func carryOut(_ order: WorkerOrder, _ finish: @escaping OrderQueue.Finish) throws(BusError)
    /// Rolls back a change that no coordinator will finish, and calls the last argument once.
    func takeBack(_ transaction: String, _ finish: @escaping OrderQueue.Finish)
    /// One is done.
    func didCarryOut()
}

/// The coordinator's orders to a device, one after the other, each answered once. What a coordinator left unfinished is
/// taken back before what the next one asks for; its orders that still waited are not carried out.
final class OrderQueue {
    typealias Finish = (Result<JSONValue, BusError>) -> Void

    private enum Item {
        case order(WorkerOrder)
        /// The coordinator has gone in the midst of a change.
        case abandon(transaction: String)
        /// Something is to be done at the device that is no order: the work calls its argument when it is done.
        case work((@escaping () -> Void) -> Void)
        /// Nothing is left to do before the process ends.
        case end(() -> Void)
    }

    private let device: String
    private let logger: Logger
    private let send: (UInt64, Result<JSONValue, BusError>) -> Void
    private var queue: [Item] = []
    private var isBusy = false
    /// Whose work it is.
    weak var carrier: (any OrderHandler)?
    /// Called before each answer.
    var beforeReply: (() -> Void)?
    var fences: OrderFences
    /// How often a coordinator has gone: what was begun for one is not answered to the next.
    private(set) var era = 0

    private static let maximum = 64

    init(device: String, logger: Logger, send: @escaping (UInt64, Result<JSONValue, BusError>) -> Void) {
        self.device = device
        self.logger = logger
        self.send = send
        fences = OrderFences(device: device)
    }

    // MARK: Answers

    func reply(_ order: WorkerOrder, _ result: Result<JSONValue, BusError>) {
        beforeReply?()
        send(order.number, result)
    }

    /// Answers the order later. Another coordinator counts its orders anew, and is not answered.
    func answer(_ order: WorkerOrder) -> Finish {
        let begun = era
        return { [weak self] result in
            if let self, begun == era { reply(order, result) }
        }
    }

    // MARK: What waits

    /// - Throws: `limitExceeded` {limit: "orders", maximum}. What ends a transaction is always taken: refused, it would
    ///   leave its traces for good.
    func append(_ order: WorkerOrder) throws(BusError) {
        guard order.action.endsTransaction || queue.count < Self.maximum else {
            throw BusError(
                .limitExceeded, "Too many orders wait for \(device); wait for their answers.",
                ["limit": "orders", "maximum": JSONValue(Self.maximum)])
        }
        queue.append(.order(order))
        startNext()
    }

    /// The order comes right behind the last that is like that.
    ///
    /// - Returns: false, and nothing is done, where none waits.
    func insert(_ order: WorkerOrder, behindLast isLikeThat: (WorkerOrder.Action) -> Bool) -> Bool {
        let last = queue.lastIndex { if case .order(let other) = $0 { isLikeThat(other.action) } else { false } }
        guard let last else { return false }
        queue.insert(.order(order), at: last + 1)
        return true
    }

    /// The order comes right behind the present one.
    func insertNext(_ order: WorkerOrder) { queue.insert(.order(order), at: 0) }

    /// Something that is no order, and calls its argument when it is done, comes before all that waits.
    func work(_ body: @escaping (@escaping () -> Void) -> Void) {
        queue.insert(.work(body), at: 0)
        startNext()
    }

    /// A change that its coordinator has left is taken back before anything that the next one asks for.
    func takeBack(_ transaction: String) {
        logger.warning("a change is taken back: the coordinator left it unfinished")
        queue.insert(.abandon(transaction: transaction), at: 0)
    }

    /// The coordinator has gone, and has left these unfinished.
    func abandon(_ transactions: [String]) {
        era += 1
        queue.removeAll { if case .order = $0 { true } else { false } }
        for transaction in transactions { takeBack(transaction) }
        startNext()
    }

    /// No coordinator will come: takes these back, and calls the body when nothing is left to do.
    func giveUp(_ transactions: [String], then body: @escaping () -> Void) {
        for transaction in transactions { takeBack(transaction) }
        queue.append(.end(body))
        startNext()
    }

    // MARK: One after the other

    private func startNext() {
        if !isBusy, case .order(let order)? = queue.first { carrier?.willCarryOut(order) }
        guard !isBusy, !queue.isEmpty, let carrier else { return }
        isBusy = true
        switch queue.removeFirst() {
        case .abandon(let id): carrier.takeBack(id) { [weak self] _ in self?.done() }
        case .work(let body): body { [weak self] in self?.done() }
        case .end(let body):
            body()
            done()
        case .order(let order):
            let answer = answer(order)
            let finish: Finish = { [weak self] result in
                answer(result)
                self?.done()
            }
            do throws(BusError) {
                try checkDeadline(order)
                // While it waited, a newer lock may have come.
                try fences.check(order)
                try carrier.carryOut(order, finish)
            } catch {
                finish(.failure(error))
            }
        }
    }

    private func done() {
        isBusy = false
        carrier?.didCarryOut()
        startNext()
    }

    // The coordinator has returned an error to its client by then.
    private func checkDeadline(_ order: WorkerOrder) throws(BusError) {
        guard let deadline = order.deadline, !order.action.endsTransaction, MonotonicClock.now() > deadline else {
            return
        }
        throw BusError(
            .limitExceeded, "\(device) was busy for too long, and nothing was done; try again.",
            ["device": .string(device), "limit": "orderWait", "maximum": JSONValue(WorkerOrder.patience)])
    }
}
