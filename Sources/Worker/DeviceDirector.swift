import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import LinuxIO
import Logging

/// Carries out on the device what its life (``DeviceLife``) asks for, and knows how the device is.
final class DeviceDirector {
    private let device: String
    private let loop: Loop
    private let thread: DeviceThread<DeviceKeeper>
    private let frames: FrameDesk
    private let logger: Logger
    /// Nanoseconds; 0: none.
    private let silenceLimit: Int64
    private var life: DeviceLife
    private var run: StreamRun?
    private var wakeTimer: Loop.Token?
    private var whenHeld: ((Result<DeviceSnapshot, BusError>) -> Void)?
    private var whenEnded: (() -> Void)?
    private var hasFrame = false
    private var events: EventWatch?
    private var pacer = EventPacer()
    /// Somebody waits for what the camera moves by itself: it is told at once.
    var isAwaited = false
    private var paceTimer: Loop.Token?
    private var isLocked = false
    /// The device thread has been told of the lock, or is being told.
    private var isTellingLock = false
    private var isCatchingUp = false
    private var lookTimer: Loop.Token?
    /// ``error`` is of the stream, not of the device.
    private var isErrorOfStream = false

    /// How the device is, as far as is known.
    let knowledge: DeviceKnowledge
    /// Why the device can't be opened or gives no frames, if so.
    private(set) var error: BusError?
    /// Frames that the device lost before they came here, since the start of the process.
    private(set) var lost: UInt64 = 0
    /// Told when something of what is told in the state has changed.
    var onChange: (() -> Void)?
    /// Told after each opening.
    var onOpened: (() -> Void)?
    /// Told what a work that was no order has left behind.
    var onReported: ((DeviceKeeper.Report) -> Void)?
    /// Told when the picture that comes into the device is another; true: of another size.
    var onSourceChanged: ((Bool) -> Void)?

    init(
        device: String, _ loop: Loop, _ thread: DeviceThread<DeviceKeeper>, _ frames: FrameDesk,
        idleMilliseconds: Int, silenceLimitMilliseconds: Int, logger: Logger
    ) {
        self.device = device
        self.loop = loop
        self.thread = thread
        self.frames = frames
        self.logger = logger
        silenceLimit = Int64(silenceLimitMilliseconds) * 1_000_000
        knowledge = DeviceKnowledge(logger: logger)
        life = DeviceLife(idleTime: Int64(idleMilliseconds) * 1_000_000)
    }

    var snapshot: DeviceSnapshot? { knowledge.snapshot }

    var isOpen: Bool {
        switch life.phase {
        case .closed, .opening: false
        case .open, .starting, .streaming, .stopping, .closing: true
        }
    }

    /// The stream that runs.
    var stream: StreamRun? { life.phase == .streaming ? run : nil }

    // MARK: Wishes

    /// Opens the device for the first time.
    func begin() { perform(life.begin(at: MonotonicClock.now())) }

    func demand(isLocked: Bool, wantsFrames: Bool) {
        if isLocked != self.isLocked {
            self.isLocked = isLocked
            tellLock()
        }
        if !wantsFrames, isErrorOfStream { forgetError() }
        perform(life.demand(isLocked: isLocked, wantsFrames: wantsFrames, at: MonotonicClock.now()))
    }

    /// Gets the device ready for an order, and keeps it so until ``release(_:)``. One order at a time.
    func hold(_ hold: DeviceLife.Hold, then body: @escaping (Result<DeviceSnapshot, BusError>) -> Void) {
        whenHeld = body
        perform(life.hold(hold, at: MonotonicClock.now()))
    }

    /// Something is under way at the device that ends by itself, or no more: it stays open for that, once it is.
    func keepOpen(_ isBusy: Bool) { perform(life.busy(isBusy, at: MonotonicClock.now())) }

    /// A zoom ramp has come so far.
    func zoomed(_ control: String, _ value: Int64) {
        knowledge.zoomed(control, value, at: MonotonicClock.now())
        onChange?()
    }

    /// A zoom ramp has ended, and the device was read since.
    func zoomEnded(_ report: DeviceKeeper.Report, _ control: String) {
        knowledge.endZoom(control)
        take(report, configured: [control])
        onReported?(report)
        onChange?()
    }

    /// The exposure is on its way, and has come so far.
    func exposed(_ values: [String: ControlValue]) {
        knowledge.moved(values, at: MonotonicClock.now())
        onChange?()
    }

    /// The exposure has come to its end, and the device was read since.
    func exposureEnded(_ report: DeviceKeeper.Report) {
        take(report)
        onReported?(report)
        onChange?()
    }

    /// The order is done.
    ///
    /// - Parameter configured: the controls that it was to set.
    func release(_ report: DeviceKeeper.Report, configured: Set<String>) {
        let before = snapshot?.configuration
        take(report, configured: configured)
        let now = MonotonicClock.now()
        // Another format may find the room that the one before did not.
        if error?.reason == .limitExceeded, let before, let after = snapshot?.configuration,
            (before.format, before.frameDuration) != (after.format, after.frameDuration)
        {
            forgetError()
            perform(life.restart(at: now))
        }
        perform(life.release(at: now))
    }

    /// The camera is there, as these facts say: perhaps in another place, perhaps after it has been away (`isNew`).
    func plugged(_ facts: CameraFacts, isNew: Bool) {
        thread.perform { keeper in
            keeper.source.plug(facts)
        } then: { [weak self] (result: Result<Bool, Never>) in
            guard let self, isNew || result.get() || error?.reason == .deviceDisconnected else { return }
            perform(life.plugged(at: MonotonicClock.now()))
        }
    }

    /// The device may have come or gone, which nobody has told but a look at it.
    func look() { perform(life.plugged(at: MonotonicClock.now())) }

    /// Starts the stream anew, if one runs: in memory that nobody has seen.
    func restart() { perform(life.restart(at: MonotonicClock.now())) }

    /// Closes the device for good, then calls the body.
    func end(then body: @escaping () -> Void) {
        whenEnded = body
        perform(life.end(at: MonotonicClock.now()))
    }

    // MARK: Deeds

    private func perform(_ actions: [DeviceLife.Action]) {
        loop.cancel(wakeTimer)
        wakeTimer = nil
        for action in actions {
            switch action {
            case .open: open()
            case .start: start()
            case .stop: stop()
            case .close: close()
            case .wake(let time):
                wakeTimer = loop.schedule(at: time) { [weak self] in
                    guard let self else { return }
                    perform(life.wake(at: MonotonicClock.now()))
                }
            case .granted: answerHold(snapshot.map(Result.success) ?? .failure(unknownDevice))
            case .refused: answerHold(.failure(error ?? BusError(.shuttingDown, "The worker of \(device) is ending.")))
            case .ended:
                whenEnded?()
                whenEnded = nil
            }
        }
        onChange?()
    }

    private func answerHold(_ result: Result<DeviceSnapshot, BusError>) {
        let body = whenHeld
        whenHeld = nil
        // Not from within: the answer may end the hold, and so change the life while it is acted upon.
        loop.schedule(at: 0) { body?(result) }
    }

    private func open() {
        thread.perform { keeper throws(SourceError) in
            let events = try keeper.open()
            return (events, keeper.report())
        } then: { [weak self] result in
            guard let self else { return }
            let now = MonotonicClock.now()
            switch result {
            case .success((let queue, let report)):
                error = nil
                logger.debug("device opened")
                take(report)
                // What stood in for something else does so no more.
                onReported?(report)
                if let queue { watch(queue) }
                perform(life.opened(at: now))
                onOpened?()
            case .failure(let failure):
                failed("device can't be opened", failure)
                perform(life.openFailed(at: now))
            }
        }
    }

    private func start() {
        thread.perform { keeper throws(SourceError) in
            let (stream, ring) = try keeper.start()
            return (stream, ring, keeper.report())
        } then: { [weak self] result in
            guard let self else { return }
            switch result {
            case .success((let stream, let ring, let report)):
                error = nil
                take(report)
                begin(stream, ring)
            case .failure(let failure):
                failed("stream can't be started", failure, isOfStream: true)
                let reopen = failure.kind == .disconnected || failure.kind == .failed
                perform(
                    life.startFailed(
                        reopen: reopen, isInUse: failure.kind == .inUse, at: MonotonicClock.now()))
            }
        }
    }

    private func begin(_ stream: any FrameStream, _ ring: NativeRing) {
        let run = StreamRun(stream, ring, loop, silenceLimit: silenceLimit)
        self.run = run
        hasFrame = false
        // Some drivers settle these only now.
        let format = FormatSelection(pixelFormat: run.layout.pixelFormat, dimensions: run.layout.dimensions)
        knowledge.streams(format, run.frameDuration)
        run.onFrame = { [weak self] frame in
            guard let self else { return }
            if !hasFrame, frame != nil {
                hasFrame = true
                life.firstFrame(at: MonotonicClock.now())
            }
            frames.deliver(frame)
        }
        run.onGap = { [weak self] count in self?.lost += count }
        run.onKeyframeWanted = { [weak self] in self?.requestKeyframe() }
        run.onLost = { [weak self] failure in self?.lost("stream was lost", failure, isOfStream: true) }
        frames.begin(run)
        logger.debug("stream started", metadata: ["stream": "\(run.id)", "memory": "\(run.memory.rawValue)"])
        perform(life.started(at: MonotonicClock.now()))
    }

    // The stream asks once until one comes.
    private func requestKeyframe() {
        thread.perform { keeper throws(SourceError) in
            try keeper.source.requestKeyframe()
        } then: { [weak self] result in
            guard case .failure(let failure) = result else { return }
            self?.logger.debug("no key frame can be asked for", metadata: ["error": "\(failure)"])
        }
    }

    private func stop() {
        guard let run else { return stopped() }
        frames.end()
        run.end { [weak self] in
            guard let self else { return }
            // Not from within: the frame that has just come back is still being accounted for.
            loop.schedule(at: 0) { [weak self] in self?.stopped() }
        }
    }

    private func stopped() {
        frames.forget()
        let ring = run?.ring
        run = nil
        thread.perform { keeper throws(SourceError) in
            try keeper.stop()
        } then: { [weak self] result in
            guard let self else { return }
            if case .failure(let failure) = result {
                logger.warning("stream can't be stopped in order", metadata: ["error": "\(failure)"])
            }
            // Only now: till then the device has written into it, and a closed ring is promised to stay as it is.
            ring?.close()
            perform(life.stopped(at: MonotonicClock.now()))
        }
    }

    private func close() {
        events?.end()
        events = nil
        // The next opening reads what these would have told.
        pacer = EventPacer()
        loop.cancel(paceTimer)
        paceTimer = nil
        loop.cancel(lookTimer)
        lookTimer = nil
        if !life.mustReopen { forgetError() }
        thread.perform { keeper in
            keeper.close()
        } then: { [weak self] (_: Result<Void, Never>) in
            guard let self else { return }
            logger.debug("device closed")
            knowledge.closed()
            perform(life.closed(at: MonotonicClock.now()))
        }
    }

    private func lost(_ what: String, _ failure: SourceError, isOfStream: Bool = false) {
        failed(what, failure, isOfStream: isOfStream)
        perform(life.lost(at: MonotonicClock.now()))
    }

    // MARK: What the device tells

    private func watch(_ queue: any DeviceEventQueue) {
        let watch = EventWatch(queue, loop, logger)
        watch.onEvents = { [weak self] in self?.pace($0) }
        watch.onLost = { [weak self] failure in self?.lost("device was lost", failure) }
        events = watch
    }

    private func pace(_ events: [DeviceEvent]) {
        let (due, wake) = pacer.take(events, at: MonotonicClock.now()) {
            !isAwaited && knowledge.movesByItself($0)
        }
        loop.cancel(paceTimer)
        paceTimer = wake.map { time in
            loop.schedule(at: time) { [weak self] in
                guard let self else { return }
                paceTimer = nil
                take(pacer.due(at: MonotonicClock.now()))
            }
        }
        if !due.isEmpty { take(due) }
    }

    private func take(_ events: [DeviceEvent]) {
        var controls: [ControlEvent] = []
        var sourceChange: Bool?
        for event in events {
            switch event {
            case .control(let event): controls.append(event)
            case .sourceChanged(let resolution): sourceChange = sourceChange ?? false || resolution
            }
        }
        let (isIncomplete, isMeddling) = knowledge.take(controls)
        if isIncomplete || sourceChange != nil || (isMeddling && isLocked) { catchUp() }
        if let sourceChange {
            onSourceChanged?(sourceChange)
            // A running stream has buffers of the former size.
            if sourceChange { perform(life.restart(at: MonotonicClock.now())) }
        }
        onChange?()
    }

    private func take(_ report: DeviceKeeper.Report, configured: Set<String> = []) {
        knowledge.take(report, configured: configured)
        loop.cancel(lookTimer)
        lookTimer = report.nextLook.map { time in loop.schedule(at: time) { [weak self] in self?.catchUp() } }
    }

    /// Reads what events don't tell, and while the device is locked puts back what somebody else has changed.
    private func catchUp() {
        guard !isCatchingUp else { return }
        isCatchingUp = true
        thread.perform { keeper in
            keeper.retryPriority()
            // A device that was closed or lost meanwhile says so elsewhere.
            if (try? keeper.read()) != nil { try? keeper.defend() }
            return keeper.report()
        } then: { [weak self] (result: Result<DeviceKeeper.Report, Never>) in
            guard let self else { return }
            isCatchingUp = false
            take(result.get())
            onChange?()
        }
    }

    // One at a time: locks that come and go faster than the device answers are told as they are in the end.
    private func tellLock() {
        guard !isTellingLock else { return }
        isTellingLock = true
        let isLocked = isLocked
        thread.perform { keeper in
            keeper.setLocked(isLocked)
            return keeper.report()
        } then: { [weak self] (result: Result<DeviceKeeper.Report, Never>) in
            guard let self else { return }
            isTellingLock = false
            take(result.get())
            onChange?()
            if isLocked != self.isLocked { tellLock() }
        }
    }

    // What keeps the device from being opened at all is not over because nobody asks for it.
    private func forgetError() {
        guard error?.reason != .deviceDisconnected, error?.reason != .unauthorized else { return }
        error = nil
    }

    private func failed(_ what: String, _ failure: SourceError, isOfStream: Bool = false) {
        let error = BusError(failure, device: device, description: snapshot?.description)
        if error != self.error {
            logger.error("\(what)", metadata: ["error": "\(failure)", "reason": "\(error.reason.rawValue)"])
        }
        self.error = error
        isErrorOfStream = isOfStream
    }

    private var unknownDevice: BusError { BusError(.internalError, "\(device) was opened without being described.") }
}
