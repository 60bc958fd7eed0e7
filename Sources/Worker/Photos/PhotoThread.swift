import BusServer
import LinuxIO
import Synchronization
import ZeroMQ

/// A thread for what photos need time for: its results come back to the loop. What waits for it is bounded.
final class PhotoThread {
    /// Work; it answers what is then to be done on the loop.
    private typealias Job = () -> () -> Void

    // Jobs go over to the thread one by one, and their results come back; the lock orders the two.
    private final class Exchange: @unchecked Sendable {
        let wanted = Semaphore()
        let done: EventDescriptor
        private let lock = Mutex(())
        private var jobs: [Job] = []
        private var results: [() -> Void] = []
        private var isEnding = false

        init() throws(SystemError) { done = try EventDescriptor() }

        func give(_ job: @escaping Job) {
            lock.withLock { _ in jobs.append(job) }
            wanted.signal()
        }

        func end() {
            lock.withLock { _ in
                isEnding = true
                jobs = []
            }
            wanted.signal()
        }

        func takeResults() -> [() -> Void] {
            lock.withLock { _ in
                defer { results = [] }
                return results
            }
        }

        func run() {
            while true {
                wanted.wait()
                var job = lock.withLock { _ in jobs.isEmpty ? nil : jobs.removeFirst() }
                guard let current = job else {
                    if lock.withLock({ _ in isEnding }) { return }
                    continue
                }
                let result = current()
                // What it held is let go of before the loop knows the result.
                job = nil
                lock.withLock { _ in results.append(result) }
                done.signal()
            }
        }
    }

    private let loop: Loop
    private let capacity: Int
    private let exchange: Exchange
    private let thread: NamedThread
    private var token: Loop.Token?
    /// Works that were given and have not come back.
    private(set) var count = 0

    /// - Parameters:
    ///   - name: at most 15 bytes.
    ///   - capacity: works that may wait.
    init(_ loop: Loop, name: String, capacity: Int) throws(SystemError) {
        self.loop = loop
        self.capacity = capacity
        let exchange = try Exchange()
        self.exchange = exchange
        thread = try NamedThread(name: name) { exchange.run() }
        token = loop.watch(.descriptor(exchange.done.rawValue)) { [weak self] in self?.collect() }
    }

    /// Has the work done after what was asked for before; then the completion is called on the loop.
    ///
    /// - Returns: false when too much waits: nothing is done then.
    func perform<Value>(_ work: @escaping () -> Value, then completion: @escaping (Value) -> Void) -> Bool {
        guard count < capacity else { return false }
        count += 1
        exchange.give {
            let value = work()
            return { completion(value) }
        }
        return true
    }

    /// Ends the thread after the work that is under way; what waits is thrown away. One that hangs in a disk ends with
    /// the process.
    func end() {
        loop.cancel(token)
        exchange.end()
        if count == 0 { thread.join() }
    }

    private func collect() {
        exchange.done.drain()
        for result in exchange.takeResults() {
            count -= 1
            result()
        }
    }
}
