import BusServer
import LinuxIO
import Synchronization
import ZeroMQ

/// The thread that makes the calls to a device that may block, in order: opening, closing, formats, controls, starting
/// and stopping the stream. Their results come back to the loop. Frames and events are read on the loop itself, by
/// calls that never block.
///
/// A driver may block in a call for seconds. The loop runs meanwhile, and decides whether the call hangs.
final class DeviceThread<Device> {
    /// Work for the device; it answers what is then to be done on the loop.
    private typealias Job = (Device) -> () -> Void

    // One job at a time goes over to the thread, and its result comes back; the lock orders the two.
    private final class Exchange: @unchecked Sendable {
        let device: Device
        let wanted = Semaphore()
        let done: EventDescriptor
        private let lock = Mutex(())
        private var job: Job?
        private var result: (() -> Void)?
        private var isEnding = false

        init(_ device: Device) throws(SystemError) {
            self.device = device
            done = try EventDescriptor()
        }

        func give(_ job: @escaping Job) {
            lock.withLock { _ in self.job = job }
            wanted.signal()
        }

        func end() {
            lock.withLock { _ in isEnding = true }
            wanted.signal()
        }

        func takeResult() -> (() -> Void)? {
            lock.withLock { _ in
                defer { result = nil }
                return result
            }
        }

        func run() {
            while true {
                wanted.wait()
                var job = lock.withLock { _ in self.job.take() }
                guard let current = job else {
                    if lock.withLock({ _ in isEnding }) { return }
                    continue
                }
                let result = current(device)
                // The loop may let go of what the job holds as soon as it knows the result.
                job = nil
                lock.withLock { _ in self.result = result }
                done.signal()
            }
        }
    }

    private let loop: Loop
    private let clock: CallClock
    private let exchange: Exchange
    private let thread: NamedThread
    private var token: Loop.Token?
    private var timer: Loop.Token?
    private var waiting: [Job] = []
    private var isBusy = false

    /// Called when ``busySince`` has changed: a request takes suspiciously long, or is over.
    var onBusy: (() -> Void)?
    /// Called when a request hangs: this process cannot use the device any more.
    var onHang: (() -> Void)?
    /// Since when one request to it has been taking suspiciously long (monotonic nanoseconds).
    private(set) var busySince: Int64?

    private let busyTime: Int64
    private let hangTime: Int64

    /// - Parameters:
    ///   - device: from here on used on the thread only.
    ///   - clock: has the start time of the request that runs.
    ///   - busyTime: nanoseconds after which a request is reported as busy.
    ///   - hangTime: nanoseconds after which a request hangs.
    init(
        _ loop: Loop, device: Device, clock: CallClock, busyTime: Int64 = 500_000_000, hangTime: Int64 = 10_000_000_000
    ) throws(SystemError) {
        self.loop = loop
        self.busyTime = busyTime
        self.hangTime = hangTime
        self.clock = clock
        let exchange = try Exchange(device)
        self.exchange = exchange
        thread = try NamedThread(name: "device") { exchange.run() }
        token = loop.watch(.descriptor(exchange.done.rawValue)) { [weak self] in self?.finished() }
    }

    /// Has the work done after all that was asked for before; then the completion is called on the loop.
    ///
    /// Callers limit their requests: the lifecycle of the device has one at a time, orders are counted.
    func perform<Value, Failure: Error>(
        _ work: @escaping (Device) throws(Failure) -> Value,
        then completion: @escaping (Result<Value, Failure>) -> Void
    ) {
        waiting.append { device in
            let result = Result { () throws(Failure) in try work(device) }
            return { completion(result) }
        }
        startNext()
    }

    /// Ends the thread after the work that is under way, and waits for it; what waits is thrown away.
    func end() {
        loop.cancel(token)
        loop.cancel(timer)
        waiting = []
        exchange.end()
        thread.join()
    }

    /// Whether the thread is at work now.
    var isAtWork: Bool { isBusy }

    private func startNext() {
        guard !isBusy, !waiting.isEmpty else { return }
        isBusy = true
        exchange.give(waiting.removeFirst())
        watch(from: MonotonicClock.now())
    }

    private func finished() {
        exchange.done.drain()
        guard let completion = exchange.takeResult() else { return }
        isBusy = false
        loop.cancel(timer)
        timer = nil
        setBusySince(nil)
        startNext()
        completion()
    }

    private func watch(from start: Int64) {
        // A request that was reported as busy is checked again before it may hang: its work may continue with other
        // requests.
        let next = busySince == start ? min(start + hangTime, MonotonicClock.now() + busyTime) : start + busyTime
        timer = loop.schedule(at: next) { [weak self] in self?.judge() }
    }

    private func judge() {
        let now = MonotonicClock.now()
        // Between two calls of one job nothing is owed: then the next one begins about now.
        let start = clock.busySince ?? now
        if now - start >= hangTime {
            onHang?()
        } else {
            setBusySince(now - start >= busyTime ? start : nil)
            watch(from: start)
        }
    }

    private func setBusySince(_ start: Int64?) {
        guard busySince != start else { return }
        busySince = start
        onBusy?()
    }
}
