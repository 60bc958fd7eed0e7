import BusProtocol
import Glibc
import LinuxIO
import Synchronization
import ZeroMQ

/// The one thread of a client. It owns the sockets, which never cross threads, and runs posted actions.
///
/// Only ``ClientLoop/Handle`` is used from outside.
final class ClientLoop: SocketLoop {
    let context: Context
    /// Requests; nil until the client is connected.
    private(set) var calls: CallChannel?
    private(set) var subscriptions: [UInt64: Subscription] = [:]
    private var endNotice: EndNoticeListener?
    private let handle: Handle
    /// The callers that wait for an examination.
    private var examining: [(GatewayObstacle?) -> Void] = []
    private var appointments: [(token: UInt64, time: Int64, action: () -> Void)] = []
    private var lastToken: UInt64 = 0
    private var pollSet: PollSet?
    private var isStopping = false

    fileprivate init(_ context: Context, _ handle: Handle) {
        self.context = context
        self.handle = handle
    }

    func add(_ channel: CallChannel) {
        calls = channel
        pollSet = nil
    }

    func add(_ subscription: Subscription, number: UInt64) {
        subscriptions[number] = subscription
        pollSet = nil
    }

    /// Ends subscriptions at workers when the bus ends.
    func awaitEndNotice(_ place: BusPlace) throws(ZeroMQError) {
        guard endNotice == nil else { return }
        endNotice = try EndNoticeListener(context, place)
        pollSet = nil
    }

    func removeSubscription(_ number: UInt64) {
        subscriptions.removeValue(forKey: number)?.close(.closed)
        pollSet = nil
    }

    func sourcesChanged() { pollSet = nil }

    @discardableResult
    func schedule(at time: Int64, _ action: @escaping () -> Void) -> UInt64 {
        lastToken += 1
        appointments.append((lastToken, time, action))
        return lastToken
    }

    func unschedule(_ token: UInt64?) {
        guard let token else { return }
        appointments.removeAll { $0.token == token }
    }

    func examine(_ bus: RemoteBus, _ tell: @escaping (GatewayObstacle?) -> Void) {
        examining.append(tell)
        guard examining.count == 1 else { return }
        let handle = handle
        bus.examine { found in handle.post { $0.examined(found) } }
    }

    private func examined(_ found: GatewayObstacle?) {
        let waiting = examining
        examining = []
        for tell in waiting { tell(found) }
    }

    fileprivate func run() {
        var failure = ClientError.closed
        while true {
            for action in handle.takePosted() { action(self) }
            if isStopping { break }
            calls?.work()
            for subscription in subscriptions.values { subscription.work() }
            if endNotice?.hasCome() == true { for subscription in subscriptions.values { subscription.busEnded() } }
            // After what has come: a process that was stopped must not find its answers too late.
            keepAppointments()
            do throws(ZeroMQError) {
                try waitingSet().wait(timeout: millisecondsToNextAppointment())
            } catch {
                failure = .system(error.description)
                break
            }
        }
        handle.refuse(failure)
        close(failure)
        for action in handle.takePosted() { action(self) }
        // What was posted at the last moment may have added somebody.
        close(failure)
    }

    private func waitingSet() throws(ZeroMQError) -> PollSet {
        if let pollSet { return pollSet }
        let made = try PollSet([.descriptor(handle.wake.rawValue)] + sources)
        pollSet = made
        return made
    }

    private var sources: [PollSet.Source] {
        (calls?.sources ?? []) + [endNotice?.source].compactMap(\.self) + subscriptions.values.flatMap(\.sources)
    }

    private func close(_ failure: ClientError) {
        calls?.close(failure)
        for subscription in subscriptions.values { subscription.close(failure) }
        subscriptions = [:]
    }

    fileprivate func stop() { isStopping = true }

    private func millisecondsToNextAppointment() -> Int? {
        guard let next = appointments.map(\.time).min() else { return nil }
        let (rest, overflow) = next.subtractingReportingOverflow(MonotonicClock.now())
        guard !overflow, rest > 0 else { return 0 }
        return Int(min(rest / 1_000_000 + 1, Int64(Int32.max)))
    }

    private func keepAppointments() {
        let now = MonotonicClock.now()
        while let index = appointments.firstIndex(where: { $0.time <= now }) {
            appointments.remove(at: index).action()
        }
    }
}

extension ClientLoop {
    /// The loop as other threads see it.
    final class Handle: Sendable {
        private struct Posted {
            var actions: [@Sendable (ClientLoop) -> Void] = []
            var refusal: ClientError?
            var whenEnded: [@Sendable () -> Void] = []
            var hasEnded = false
        }

        fileprivate let wake: EventDescriptor
        private let posted = Mutex(Posted())
        private let thread = Mutex<NamedThread?>(nil)

        init() throws(ClientError) {
            do throws(SystemError) {
                wake = try EventDescriptor()
            } catch {
                throw .system(error.description)
            }
            let context: Context
            do throws(ZeroMQError) {
                context = try Context()
            } catch {
                throw .system(error.description)
            }
            do throws(SystemError) {
                let started = try NamedThread(name: "camerabus-io") { [self] in
                    ClientLoop(context, self).run()
                    ended()
                }
                thread.withLock { $0 = started }
            } catch {
                throw .system(error.description)
            }
        }

        /// Does the action on the loop's thread, soon.
        ///
        /// - Parameter unlessCancelled: not if the current task is cancelled. Asked in the same breath, so that what
        ///   its cancellation handler posts comes later.
        /// - Returns: why it will never be done.
        @discardableResult
        func post(
            unlessCancelled: Bool = false, _ action: @escaping @Sendable (ClientLoop) -> Void
        ) -> ClientError? {
            let refusal: ClientError? = posted.withLock { posted in
                if let refusal = posted.refusal { return refusal }
                if unlessCancelled, Task.isCancelled { return .cancelled }
                posted.actions.append(action)
                return nil
            }
            if refusal == nil { wake.signal() }
            return refusal
        }

        /// Ends the loop without waiting for it.
        func stop() { post { $0.stop() } }

        /// Waits for the thread's end, which ``stop()`` has asked for.
        func waitForEnd() async {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let isLate = posted.withLock { posted in
                    if !posted.hasEnded { posted.whenEnded.append { continuation.resume() } }
                    return posted.hasEnded
                }
                if isLate { continuation.resume() }
            }
            // It is past its last line: this waits for no more than the kernel.
            thread.withLock { thread in
                thread?.join()
                thread = nil
            }
        }

        fileprivate func takePosted() -> [@Sendable (ClientLoop) -> Void] {
            wake.drain()
            return posted.withLock { posted in
                defer { posted.actions = [] }
                return posted.actions
            }
        }

        fileprivate func refuse(_ error: ClientError) { posted.withLock { $0.refusal = error } }

        private func ended() {
            let waiting = posted.withLock { posted in
                defer { posted.whenEnded = [] }
                posted.hasEnded = true
                return posted.whenEnded
            }
            for resume in waiting { resume() }
        }
    }
}

/// Monotonic nanoseconds that far from now; as far as can be told, for more.
func monotonic(after duration: Duration) -> Int64 {
    let (sum, overflow) = MonotonicClock.now().addingReportingOverflow(duration.clampedNanoseconds)
    return overflow ? .max : sum
}

extension Duration {
    /// Whole nanoseconds, negative ones as 0.
    var clampedNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0 else { return 0 }
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, more) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflow || more ? .max : max(0, sum)
    }

    /// Whole milliseconds, negative ones as 0.
    var clampedMilliseconds: Int64 { clampedNanoseconds / 1_000_000 }
}
