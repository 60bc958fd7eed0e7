import BusProtocol
import BusServer
import LinuxIO

/// Runs the actions of a ``DeviceLifecycle``, wakes it in time, and answers the order that holds the device.
final class LifecycleRunner<Snapshot> {
    /// The actions on the device; each notifies the lifecycle when it is done.
    struct Steps {
        var open, start, stop, close: () -> Void
        /// The last known state of the device.
        var snapshot: () -> Snapshot?
        /// Why it can't be opened, if so.
        var error: () -> BusError?
        /// Called when the state may have changed.
        var changed: () -> Void
    }

    private let device: String
    private let loop: Loop
    private var life: DeviceLifecycle
    private var wakeTimer: Loop.Token?
    private var whenHeld: ((Result<Snapshot, BusError>) -> Void)?
    private var whenEnded: (() -> Void)?
    /// nil: nothing is done yet.
    var steps: Steps?

    /// - Parameter idleMilliseconds: how long the device stays open when no client wants it any more.
    init(device: String, _ loop: Loop, idleMilliseconds: Int) {
        self.device = device
        self.loop = loop
        life = DeviceLifecycle(idleTime: Int64(idleMilliseconds) * 1_000_000)
    }

    var isOpen: Bool {
        switch life.phase {
        case .closed, .opening: false
        case .open, .starting, .streaming, .stopping, .closing: true
        }
    }

    var isStreaming: Bool { life.phase == .streaming }

    /// The opened device is of no use any more.
    var mustReopen: Bool { life.mustReopen }

    /// Passes an event with the present time to the lifecycle, and runs the actions that it returns.
    func handle(_ what: (inout DeviceLifecycle, _ now: Int64) -> [DeviceLifecycle.Action]) {
        perform(what(&life, MonotonicClock.now()))
    }

    /// The first frame of a stream has come.
    func firstFrame() { life.firstFrame(at: MonotonicClock.now()) }

    /// Gets the device ready for an order, and keeps it so until its `release`. One order at a time.
    func hold(_ hold: DeviceLifecycle.Hold, then body: @escaping (Result<Snapshot, BusError>) -> Void) {
        whenHeld = body
        handle { $0.hold(hold, at: $1) }
    }

    /// Closes the device for good, then calls the body.
    func end(then body: @escaping () -> Void) {
        whenEnded = body
        handle { $0.end(at: $1) }
    }

    private func perform(_ actions: [DeviceLifecycle.Action]) {
        loop.cancel(wakeTimer)
        wakeTimer = nil
        for action in actions {
            switch action {
            case .open: steps?.open()
            case .start: steps?.start()
            case .stop: steps?.stop()
            case .close: steps?.close()
            case .wake(let time):
                wakeTimer = loop.schedule(at: time) { [weak self] in self?.handle { $0.wake(at: $1) } }
            case .granted: answerHold(steps?.snapshot().map(Result.success) ?? .failure(unknown))
            case .refused: answerHold(.failure(steps?.error() ?? ending))
            case .ended:
                whenEnded?()
                whenEnded = nil
            }
        }
        steps?.changed()
    }

    private var unknown: BusError { BusError(.internalError, "\(device) was opened without being described.") }

    private var ending: BusError { BusError(.shuttingDown, "The worker of \(device) is ending.") }

    private func answerHold(_ result: Result<Snapshot, BusError>) {
        let body = whenHeld
        whenHeld = nil
        // Not from within: the answer may end the hold, and so change the life while it is acted upon.
        loop.schedule(at: 0) { body?(result) }
    }
}
