import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import LinuxIO
import Logging

/// Opens, starts, stops and closes a camera as its ``DeviceLifecycle`` decides, and holds its present state.
final class CameraController {
    private let device: String
    private let loop: Loop
    private let thread: DeviceThread<CameraDevice>
    private let frames: FrameRelay
    private let logger: Logger
    /// Nanoseconds; 0: none.
    private let silenceLimit: Int64
    private let life: LifecycleRunner<DeviceSnapshot>
    private var run: CameraStream?
    private var hasFrame = false
    private var events: DeviceEventReader?
    private var pacer = EventPacer()
    /// A photo waits for values that the camera changes by itself: they are published at once.
    var isAwaited = false
    private var paceTimer: Loop.Token?
    private var isLocked = false
    /// The device thread is being notified of the lock.
    private var isTellingLock = false
    private var isCatchingUp = false
    private var lookTimer: Loop.Token?
    /// ``error`` is of the stream, not of the device.
    private var isErrorOfStream = false

    /// How the device is, as far as is known.
    let cache: DeviceCache
    /// Why the device cannot be opened or gives no frames; nil: no error.
    private(set) var error: BusError?
    /// Frames that the device lost before they came here, since the start of the process.
    private(set) var lost: UInt64 = 0
    /// Called when the published state changes.
    var onChange: (() -> Void)?
    /// Called after each opening.
    var onOpened: (() -> Void)?
    /// Called with the report of work that was not an order.
    var onReported: ((CameraDevice.Report) -> Void)?
    /// Called when the input of the device has changed; true: the picture has another size.
    var onSourceChanged: ((Bool) -> Void)?

    init(
        device: String, _ loop: Loop, _ thread: DeviceThread<CameraDevice>, _ frames: FrameRelay,
        idleMilliseconds: Int, silenceLimitMilliseconds: Int, logger: Logger
    ) {
        self.device = device
        self.loop = loop
        self.thread = thread
        self.frames = frames
        self.logger = logger
        silenceLimit = Int64(silenceLimitMilliseconds) * 1_000_000
        cache = DeviceCache(logger: logger)
        life = LifecycleRunner(device: device, loop, idleMilliseconds: idleMilliseconds)
        setSteps()
    }

    var snapshot: DeviceSnapshot? { cache.snapshot }

    var isOpen: Bool { life.isOpen }

    /// The stream that runs.
    var stream: CameraStream? { life.isStreaming ? run : nil }

    /// What the device's pictures are, or would be if it streamed; nil before it was opened for the first time.
    var formatDescription: FormatDescription? { stream?.layout.description ?? snapshot?.formatDescription }

    // MARK: Requests

    /// Opens the device for the first time.
    func begin() { life.handle { $0.begin(at: $1) } }

    func demand(isLocked: Bool, wantsFrames: Bool) {
        if isLocked != self.isLocked {
            self.isLocked = isLocked
            passLock()
        }
        if !wantsFrames, isErrorOfStream { forgetError() }
        life.handle { $0.demand(isLocked: isLocked, wantsFrames: wantsFrames, at: $1) }
    }

    /// Gets the device ready for an order, and keeps it so until ``release(_:configured:)``. One order at a time.
    func hold(_ hold: DeviceLifecycle.Hold, then body: @escaping (Result<DeviceSnapshot, BusError>) -> Void) {
        life.hold(hold, then: body)
    }

    /// Something is under way at the device that ends by itself, or no more: it stays open for that, once it is.
    func keepOpen(_ isBusy: Bool) { life.handle { $0.busy(isBusy, at: $1) } }

    /// A zoom ramp has reached this value.
    func zoomed(_ control: String, _ value: Int64) {
        cache.zoomed(control, value, at: MonotonicClock.now())
        onChange?()
    }

    /// A zoom ramp has ended, and the device was read since.
    func zoomEnded(_ report: CameraDevice.Report, _ control: String) {
        cache.endZoom(control)
        take(report, configured: [control])
        onReported?(report)
        onChange?()
    }

    /// The exposure is adjusting, and has reached these values.
    func exposed(_ values: [String: ControlValue]) {
        cache.moved(values, at: MonotonicClock.now())
        onChange?()
    }

    /// The exposure has settled, and the device has been read since.
    func exposureEnded(_ report: CameraDevice.Report) {
        take(report)
        onReported?(report)
        onChange?()
    }

    /// The order is done.
    ///
    /// - Parameter configured: the controls that it was to set.
    func release(_ report: CameraDevice.Report, configured: Set<String>) {
        let before = snapshot?.configuration
        take(report, configured: configured)
        // Another format may find the room that the one before did not.
        if error?.reason == .limitExceeded, let before, let after = snapshot?.configuration,
            (before.format, before.frameDuration) != (after.format, after.frameDuration)
        {
            forgetError()
            life.handle { $0.restart(at: $1) }
        }
        life.handle { $0.release(at: $1) }
    }

    /// The camera is there, as these facts say: perhaps in another place, perhaps after it has been away (`isNew`).
    func plugged(_ facts: CameraFacts, isNew: Bool) {
        thread.perform { camera in
            camera.source.plug(facts)
        } then: { [weak self] (result: Result<Bool, Never>) in
            guard let self, isNew || result.get() || error?.reason == .deviceDisconnected else { return }
            life.handle { $0.plugged(at: $1) }
        }
    }

    /// The device may have been connected or disconnected without an event: looks at it.
    func look() { life.handle { $0.plugged(at: $1) } }

    /// Restarts the stream, if one runs, in new memory that no reader has.
    func restart() { life.handle { $0.restart(at: $1) } }

    /// Closes the device for good, then calls the body.
    func end(then body: @escaping () -> Void) {
        life.end(then: body)
    }

    // MARK: Steps

    private func setSteps() {
        life.steps = LifecycleRunner.Steps(
            open: { [weak self] in self?.open() }, start: { [weak self] in self?.start() },
            stop: { [weak self] in self?.stop() }, close: { [weak self] in self?.close() },
            snapshot: { [weak self] in self?.snapshot }, error: { [weak self] in self?.error },
            changed: { [weak self] in self?.onChange?() })
    }

    private func open() {
        thread.perform { camera throws(SourceError) in
            let events = try camera.open()
            return (events, camera.report())
        } then: { [weak self] result in
            guard let self else { return }
            switch result {
            case .success((let queue, let report)):
                error = nil
                logger.debug("device opened")
                take(report)
                // What stood in for something else does so no more.
                onReported?(report)
                if let queue { watch(queue) }
                life.handle { $0.opened(at: $1) }
                onOpened?()
            case .failure(let failure):
                failed("device can't be opened", failure)
                life.handle { $0.openFailed(at: $1) }
            }
        }
    }

    private func start() {
        thread.perform { camera throws(SourceError) in
            let (stream, ring) = try camera.start()
            return (stream, ring, camera.report())
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
                life.handle { $0.startFailed(reopen: reopen, isInUse: failure.kind == .inUse, at: $1) }
            }
        }
    }

    private func begin(_ stream: any FrameStream, _ ring: NativeRing) {
        let run = CameraStream(stream, ring, loop, silenceLimit: silenceLimit)
        self.run = run
        hasFrame = false
        cache.streams(run.layout.description, as: stream.layout.dimensions, run.frameDuration)
        run.onFrame = { [weak self] content in
            guard let self else { return }
            if !hasFrame, case .whole = content {
                hasFrame = true
                life.firstFrame()
            }
            frames.deliver(content)
        }
        run.onGap = { [weak self] count in self?.lost += count }
        run.onKeyframeWanted = { [weak self] in self?.requestKeyframe() }
        run.onChanged = { [weak self] in self?.changed($0, from: ring.layout.dimensions) }
        run.onLost = { [weak self] failure in self?.lost("stream was lost", failure, isOfStream: true) }
        frames.begin(run)
        logger.debug("stream started", metadata: ["stream": "\(run.id)", "memory": "\(run.memory.rawValue)"])
        life.handle { $0.started(at: $1) }
    }

    // The stream asks once until one comes.
    private func requestKeyframe() {
        thread.perform { camera throws(SourceError) in
            try camera.source.requestKeyframe()
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
        thread.perform { camera throws(SourceError) in
            try camera.stop()
        } then: { [weak self] result in
            guard let self else { return }
            if case .failure(let failure) = result {
                logger.warning("stream can't be stopped in order", metadata: ["error": "\(failure)"])
            }
            // Only now: until then the device wrote into it, and a closed ring must not change.
            ring?.close()
            life.handle { $0.stopped(at: $1) }
        }
    }

    private func close() {
        events?.end()
        events = nil
        // The next opening reads what these events would have contained.
        pacer = EventPacer()
        loop.cancel(paceTimer)
        paceTimer = nil
        loop.cancel(lookTimer)
        lookTimer = nil
        if !life.mustReopen { forgetError() }
        thread.perform { camera in
            camera.close()
        } then: { [weak self] (_: Result<Void, Never>) in
            guard let self else { return }
            logger.debug("device closed")
            cache.closed()
            life.handle { $0.closed(at: $1) }
        }
    }

    private func changed(_ pictures: ActualPictures, from dimensions: Dimensions) {
        thread.perform { camera in
            camera.picturesHave(pictures)
        } then: { [weak self] (_: Result<Void, Never>) in
            guard let self else { return }
            logger.notice(
                "pictures have another size, turn or colours than their format",
                metadata: ["size": "\(pictures.dimensions)"])
            onSourceChanged?(pictures.dimensions != dimensions)
            life.handle { $0.changed(at: $1) }
        }
    }

    private func lost(_ what: String, _ failure: SourceError, isOfStream: Bool = false) {
        if case .changed(let resolution) = failure.kind {
            logger.notice("\(failure.message)")
            onSourceChanged?(resolution)
            return life.handle { $0.changed(at: $1) }
        }
        failed(what, failure, isOfStream: isOfStream)
        life.handle { $0.lost(at: $1) }
    }

    // MARK: Events of the device

    private func watch(_ queue: any DeviceEventQueue) {
        let watch = DeviceEventReader(queue, loop, logger)
        watch.onEvents = { [weak self] in self?.pace($0) }
        watch.onLost = { [weak self] failure in self?.lost("device was lost", failure) }
        events = watch
    }

    private func pace(_ events: [DeviceEvent]) {
        let (due, wake) = pacer.take(events, at: MonotonicClock.now()) {
            !isAwaited && cache.movesByItself($0)
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
        let (isIncomplete, isMeddling) = cache.take(controls)
        if isIncomplete || sourceChange != nil || (isMeddling && isLocked) { catchUp() }
        if let sourceChange {
            onSourceChanged?(sourceChange)
            // A running stream has buffers of the former size.
            if sourceChange { life.handle { $0.restart(at: $1) } }
        }
        onChange?()
    }

    private func take(_ report: CameraDevice.Report, configured: Set<String> = []) {
        cache.take(report, configured: configured)
        loop.cancel(lookTimer)
        lookTimer = report.nextLook.map { time in loop.schedule(at: time) { [weak self] in self?.catchUp() } }
    }

    /// Reads what events do not contain, and restores what another program has changed while the device is locked.
    private func catchUp() {
        guard !isCatchingUp else { return }
        isCatchingUp = true
        thread.perform { camera in
            camera.retryPriority()
            // A device that was closed or lost meanwhile says so elsewhere.
            if (try? camera.read()) != nil { try? camera.defend() }
            return camera.report()
        } then: { [weak self] (result: Result<CameraDevice.Report, Never>) in
            guard let self else { return }
            isCatchingUp = false
            take(result.get())
            onChange?()
        }
    }

    // One at a time: if locks change faster than the device answers, only the last state is passed on.
    private func passLock() {
        guard !isTellingLock else { return }
        isTellingLock = true
        let isLocked = isLocked
        thread.perform { camera in
            camera.setLocked(isLocked)
            return camera.report()
        } then: { [weak self] (result: Result<CameraDevice.Report, Never>) in
            guard let self else { return }
            isTellingLock = false
            take(result.get())
            onChange?()
            if isLocked != self.isLocked { passLock() }
        }
    }

    // An error that keeps the device from opening stays, also when no client wants the device.
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
}
