import BusProtocol
import BusServer
import LinuxIO

/// Has done what a device's life asks for, wakes it in time, and answers whoever holds the device.
final class LifecycleRunner<Snapshot> {
    /// What is to be done at the device; each tells the life when it is done.
    struct Steps {
        var open, start, stop, close: () -> Void
        /// How the device is, as far as is known.
        var snapshot: () -> Snapshot?
        /// Why it can't be opened, if so.
        var error: () -> BusError?
        /// Something may be otherwise than it was.
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

    /// - Parameter idleMilliseconds: that the device stays open when nobody wants it any more.
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

    /// Tells the life something that has happened at this time, and does what it asks for then.
    func tell(_ what: (inout DeviceLifecycle, _ now: Int64) -> [DeviceLifecycle.Action]) {
        perform(what(&life, MonotonicClock.now()))
    }

    /// The first frame of a stream has come.
    func firstFrame() { life.firstFrame(at: MonotonicClock.now()) }

    /// Gets the device ready for an order, and keeps it so until its `release`. One order at a time.
    func hold(_ hold: DeviceLifecycle.Hold, then body: @escaping (Result<Snapshot, BusError>) -> Void) {
        whenHeld = body
        tell { $0.hold(hold, at: $1) }
    }

    /// Closes the device for good, then calls the body.
    func end(then body: @escaping () -> Void) {
        whenEnded = body
        tell { $0.end(at: $1) }
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
                wakeTimer = loop.schedule(at: time) { [weak self] in self?.tell { $0.wake(at: $1) } }
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
