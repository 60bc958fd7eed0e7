import BusServer
import Glibc
import LinuxIO
import Synchronization
import ZeroMQ

/// The threads that convert frames, so that the loop never waits for a picture.
final class RenditionPool {
    // What the threads and the loop pass to each other. Each work is in one of the lists at most, so they are bounded.
    private final class Exchange: @unchecked Sendable {
        private let lock = Mutex(())
        private var ready: [RenditionWork] = []
        private var finished: [RenditionWork] = []
        private var isEnding = false
        private let wanted = Semaphore()
        let done: EventDescriptor

        init() throws(SystemError) {
            done = try EventDescriptor()
            ready.reserveCapacity(64)
            finished.reserveCapacity(64)
        }

        func schedule(_ work: RenditionWork) {
            lock.withLock { _ in ready.append(work) }
            wanted.signal()
        }

        func nextFinished() -> RenditionWork? {
            lock.withLock { _ in finished.isEmpty ? nil : finished.removeFirst() }
        }

        func end(_ threads: Int) {
            lock.withLock { _ in isEnding = true }
            for _ in 0..<threads { wanted.signal() }
        }

        func run() {
            while true {
                wanted.wait()
                let (work, isOver) = lock.withLock { _ in (ready.isEmpty ? nil : ready.removeFirst(), isEnding) }
                if isOver { return }
                guard let work else { continue }
                work.convert()
                lock.withLock { _ in finished.append(work) }
                done.signal()
            }
        }
    }

    private let exchange: Exchange
    private let threads: [NamedThread]
    private let loop: Loop
    private var token: Loop.Token?
    /// Told on the loop of each conversion that is over; ``RenditionWork/job`` is its frame.
    var onFinished: ((RenditionWork) -> Void)?

    init(_ loop: Loop) throws(SystemError) {
        self.loop = loop
        let exchange = try Exchange()
        self.exchange = exchange
        var threads: [NamedThread] = []
        for number in 0..<min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))) {
            threads.append(try NamedThread(name: "rendition-\(number)") { exchange.run() })
        }
        self.threads = threads
        token = loop.watch(.descriptor(exchange.done.rawValue)) { [weak self] in self?.collect() }
    }

    /// Has a thread convert the frame in the work's mailbox; not while it is scheduled already.
    func schedule(_ work: RenditionWork) {
        work.isScheduled = true
        exchange.schedule(work)
    }

    /// Ends the threads after what they are converting, and waits for them.
    func end() {
        loop.cancel(token)
        exchange.end(threads.count)
        for thread in threads { thread.join() }
    }

    private func collect() {
        exchange.done.drain()
        while let work = exchange.nextFinished() {
            work.isScheduled = false
            onFinished?(work)
        }
    }
}
