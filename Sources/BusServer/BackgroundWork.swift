public import LinuxIO
import Synchronization
import ZeroMQ

/// Does one kind of work that may take its time on a thread of its own, and tells of it on the loop, which nothing
/// holds up.
///
/// What is ordered while the thread is busy replaces what was ordered before and is not begun: the last order counts.
/// Likewise a result that the loop has not come to take yet is replaced by a newer one.
public final class BackgroundWork<Order: Sendable, Outcome: Sendable> {
    private final class Exchange: Sendable {
        struct State {
            var order: Order?
            var outcome: Outcome?
            /// What was ordered is the last.
            var isEnding = false
            /// Nobody waits any more.
            var isAbandoned = false
        }

        enum Next {
            case order(Order)
            case wait, end
        }

        let state = Mutex(State())
        let wanted = Semaphore()
        let done: EventDescriptor
        let work: @Sendable (Order) -> Outcome

        init(_ work: @escaping @Sendable (Order) -> Outcome) throws(SystemError) {
            self.work = work
            done = try EventDescriptor()
        }

        func run() {
            while true {
                switch next() {
                case .order(let order):
                    let outcome = work(order)
                    state.withLock { $0.outcome = outcome }
                    done.signal()
                case .wait: wanted.wait()
                case .end: return
                }
            }
        }

        // In one look, so that no order comes between the last one and the end.
        private func next() -> Next {
            state.withLock { state in
                if state.isAbandoned { return .end }
                if let order = state.order.take() { return .order(order) }
                return state.isEnding ? .end : .wait
            }
        }
    }

    private let loop: Loop
    private let exchange: Exchange
    private let thread: NamedThread
    private var token: Loop.Token?

    /// - Parameters:
    ///   - name: the thread's, at most 15 bytes.
    ///   - work: done on the thread.
    ///   - body: told of what came of it, on the loop.
    /// - Throws: when no thread can be started.
    public init(
        _ loop: Loop, name: String, work: @escaping @Sendable (Order) -> Outcome, then body: @escaping (Outcome) -> Void
    ) throws(SystemError) {
        self.loop = loop
        let exchange = try Exchange(work)
        self.exchange = exchange
        thread = try NamedThread(name: name) { exchange.run() }
        token = loop.watch(.descriptor(exchange.done.rawValue)) {
            exchange.done.drain()
            if let outcome = exchange.state.withLock({ $0.outcome.take() }) { body(outcome) }
        }
    }

    // Nobody waits for what is being done: it may never end. The thread does, when that has.
    deinit {
        loop.cancel(token)
        exchange.state.withLock { $0.isAbandoned = true }
        exchange.wanted.signal()
    }

    /// Waits until what was ordered is done. Nothing is begun any more.
    ///
    /// - Returns: what came of it last, unless that was told.
    public func end() -> Outcome? {
        guard let token else { return nil }
        loop.cancel(token)
        self.token = nil
        exchange.state.withLock { $0.isEnding = true }
        exchange.wanted.signal()
        thread.join()
        return exchange.state.withLock { $0.outcome.take() }
    }

    /// Has that done next.
    public func start(_ order: Order) {
        exchange.state.withLock { $0.order = order }
        exchange.wanted.signal()
    }
}
