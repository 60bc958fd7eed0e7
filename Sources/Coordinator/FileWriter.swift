import BusServer
import LinuxIO
import Synchronization
import ZeroMQ

/// Writes one file again and again on a thread of its own, since a disk can take its time; the newest content wins.
final class FileWriter {
    private struct Job {
        var number: UInt64
        var bytes: [UInt8]
    }

    private struct State {
        var job: Job?
        var results: [(number: UInt64, error: SystemError?)] = []
        var isEnding = false
    }

    private final class Exchange: Sendable {
        let path: String
        let state = Mutex(State())
        let wanted = Semaphore()
        let done: EventDescriptor

        init(path: String) throws(SystemError) {
            self.path = path
            done = try EventDescriptor()
        }

        func run() {
            while true {
                wanted.wait()
                while let job = state.withLock({ $0.job.take() }) {
                    var failure: SystemError?
                    do throws(SystemError) {
                        try File.replace(path, with: job.bytes, mode: 0o600)
                    } catch {
                        failure = error
                    }
                    state.withLock { $0.results.append((job.number, failure)) }
                    done.signal()
                }
                if state.withLock({ $0.isEnding }) { return }
            }
        }
    }

    private let loop: Loop
    private let exchange: Exchange
    private let thread: NamedThread
    private var token: Loop.Token?
    private var lastNumber: UInt64 = 0
    private var waiting: [(number: UInt64, body: (SystemError?) -> Void)] = []

    init(_ loop: Loop, path: String) throws(SystemError) {
        self.loop = loop
        let exchange = try Exchange(path: path)
        self.exchange = exchange
        thread = try NamedThread(name: "book") { exchange.run() }
        token = loop.watch(.descriptor(exchange.done.rawValue)) { [weak self] in self?.tell() }
    }

    deinit { end() }

    /// Has the file hold these bytes, or newer ones; the body is called when it does, or with what kept it from that.
    func write(_ bytes: [UInt8], then body: @escaping (SystemError?) -> Void) {
        lastNumber += 1
        let number = lastNumber
        waiting.append((number, body))
        exchange.state.withLock { $0.job = Job(number: number, bytes: bytes) }
        exchange.wanted.signal()
    }

    /// Waits until all is written.
    func end() {
        guard token != nil else { return }
        exchange.state.withLock { $0.isEnding = true }
        exchange.wanted.signal()
        thread.join()
        tell()
        loop.cancel(token)
        token = nil
    }

    private func tell() {
        exchange.done.drain()
        let results = exchange.state.withLock { state in
            defer { state.results = [] }
            return state.results
        }
        for (number, error) in results {
            // What a newer content replaced before its turn is in that.
            let told = waiting.prefix { $0.number <= number }
            waiting.removeFirst(told.count)
            for entry in told { entry.body(error) }
        }
    }
}
