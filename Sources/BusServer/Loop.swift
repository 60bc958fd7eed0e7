public import LinuxIO
public import ZeroMQ

/// The one loop of a process: it owns every socket and descriptor, and calls whoever waits for one of them.
///
/// Everything happens on the thread that calls ``run()``. Handlers may add and remove others, and must not block.
public final class Loop {
    /// Names a handler or a timer, to take it back.
    public struct Token: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    private struct Watch {
        let token: Token
        let source: PollSet.Source
        let handler: () -> Void
        /// In the poll set; nil: not yet.
        var index: Int?
    }

    /// In an array, a function by itself would be called by way of another.
    private struct Handler {
        let call: () -> Void
    }

    // Unchecked access: see `PollSet`.
    private let timer: TimerDescriptor
    private var watches: [Watch] = []
    @exclusivity(unchecked) private var pollSet: PollSet?
    /// What is waited on, in the order in which it came, and by its index whom to call; made anew only when watches
    /// came or went, since a turn must not allocate.
    @exclusivity(unchecked) private var turn: [Watch] = []
    @exclusivity(unchecked) private var handlers: [Handler?] = []
    @exclusivity(unchecked) private var isStale = true
    private var appointments = TimerQueue<() -> Void>()
    private var armed: Int64 = .max
    private var lastNumber: UInt64 = 0
    @exclusivity(unchecked) private var isStopping = false

    public init() throws(SystemError) { timer = try TimerDescriptor() }

    /// Calls the handler whenever the source is readable or in error. The handler takes what is there, or at least some
    /// of it: what it leaves is told again.
    @discardableResult
    public func watch(_ source: PollSet.Source, _ handler: @escaping () -> Void) -> Token {
        let token = nextToken()
        watches.append(Watch(token: token, source: source, handler: handler))
        isStale = true
        return token
    }

    /// Calls the handler once at that time (monotonic nanoseconds), or at once when it has gone by.
    @discardableResult
    public func schedule(at time: Int64, _ handler: @escaping () -> Void) -> Token {
        let token = nextToken()
        appointments.insert(handler, number: token.number, at: time)
        arm()
        return token
    }

    /// Calls the handler once after so many milliseconds.
    @discardableResult
    public func schedule(afterMilliseconds delay: Int64, _ handler: @escaping () -> Void) -> Token {
        schedule(at: MonotonicClock.now() + delay * 1_000_000, handler)
    }

    /// Takes back a handler or a timer; harmless when it is gone.
    public func cancel(_ token: Token?) {
        guard let token else { return }
        if appointments.remove(number: token.number) { return }
        if let number = watches.firstIndex(where: { $0.token == token }) {
            // At once, as its descriptor may be closed next.
            if let index = watches.remove(at: number).index { pollSet?.remove(index) }
            isStale = true
        }
    }

    /// Runs until ``stop()``.
    public func run() throws(ZeroMQError) {
        isStopping = false
        while !isStopping {
            let pollSet = try waitingSet()
            try pollSet.wait()
            if let only = pollSet.onlyReady {
                // Nobody was called before it in this turn who could have taken it back.
                if let handler = handlers[only] { handler.call() } else { keepAppointments() }
                continue
            }
            if pollSet.isReady(0) { keepAppointments() }
            for number in turn.indices {
                if let index = turn[number].index, pollSet.isReady(index) { call(turn[number]) }
            }
        }
    }

    private func call(_ watch: Watch) {
        // A handler that was taken back by another in this turn is not called any more.
        guard !isStopping, !isStale || watches.contains(where: { $0.token == watch.token }) else { return }
        watch.handler()
    }

    private func waitingSet() throws(ZeroMQError) -> PollSet {
        if let pollSet, !isStale { return pollSet }
        let pollSet: PollSet
        if let known = self.pollSet {
            pollSet = known
        } else {
            pollSet = try PollSet([.descriptor(timer.rawValue)])
            self.pollSet = pollSet
        }
        for number in watches.indices where watches[number].index == nil {
            watches[number].index = pollSet.add(watches[number].source)
        }
        turn = watches
        handlers = Array(repeating: nil, count: pollSet.count)
        for watch in turn { if let index = watch.index { handlers[index] = Handler(call: watch.handler) } }
        isStale = false
        return pollSet
    }

    /// Makes ``run()`` return after the handler that calls this.
    public func stop() { isStopping = true }

    private func nextToken() -> Token {
        lastNumber += 1
        return Token(number: lastNumber)
    }

    private func keepAppointments() {
        timer.drain()
        armed = .max
        let now = MonotonicClock.now()
        // What these put in has its turn after the sockets have had theirs.
        let last = lastNumber
        while let handler = appointments.popDue(by: now, upTo: last) { handler() }
        arm()
    }

    private func arm() {
        guard let next = appointments.nextTime(), next < armed else { return }
        armed = next
        timer.arm(at: next)
    }
}
