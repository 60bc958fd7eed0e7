import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import Delivery
import FrameRing
import LinuxIO
import Logging

/// Opens, starts, stops and closes a microphone as its ``DeviceLifecycle`` decides, and holds its present state.
final class MicrophoneController {
    private let device: String
    private let loop: Loop
    private let thread: DeviceThread<MicrophoneDevice>
    private let socket: MediaSocket
    private let logger: Logger
    /// Nanoseconds; 0: none.
    private let silenceLimit: Int64
    private let life: LifecycleRunner<SoundSnapshot>
    private var run: MicrophoneStream?
    private var wanted: SoundSubscriptionTable
    private var events: DeviceEventReader?
    private var isReading = false
    private var mustReadAgain = false
    /// ``error`` is of the stream, not of the device.
    private var isErrorOfStream = false
    /// Of streams that are over.
    private var past = Counts()

    /// What came of the microphone since the start of the process.
    struct Counts {
        var frames: UInt64 = 0
        var lostFrames: UInt64 = 0
        var overruns: UInt64 = 0
    }

    /// nil before it was opened for the first time.
    private(set) var snapshot: SoundSnapshot?
    private(set) var notRestored: [NotRestored] = []
    /// Why it can't be opened or gives no sound, if so.
    private(set) var error: BusError?
    /// That of the last committed configuration, for what is published.
    var generation: UInt64 = 0 { didSet { run?.generation = generation } }

    /// Called when the published state changes.
    var onChange: (() -> Void)?
    /// Called after each opening.
    var onOpened: (() -> Void)?
    /// Called with the report of work that was not an order.
    var onReported: ((MicrophoneDevice.Report) -> Void)?
    /// Called with the controls that something else has changed: their old and new values by name.
    var onControls: (([String: (old: ControlValue?, new: ControlValue?)]) -> Void)?
    /// Sound has been lost: how often in this stream, and how many frames in all.
    var onOverrun: ((_ overruns: UInt64, _ lostFrames: UInt64) -> Void)?
    /// There is a ring, or (nil) none any more.
    var onRing: ((SoundRendition, RingWriter?) -> Void)?
    /// Nothing can be published any more.
    var onFailure: ((String) -> Void)?

    init(
        _ options: WorkerOptions, _ loop: Loop, _ thread: DeviceThread<MicrophoneDevice>, _ socket: MediaSocket,
        logger: Logger
    ) {
        device = options.device
        self.loop = loop
        self.thread = thread
        self.socket = socket
        self.logger = logger
        silenceLimit = Int64(options.silenceLimitMilliseconds) * 1_000_000
        life = LifecycleRunner(device: options.device, loop, idleMilliseconds: options.idleCloseMilliseconds)
        wanted = SoundSubscriptionTable(device: options.device, maximumRenditions: options.renditions)
        setSteps()
    }

    var isOpen: Bool { life.isOpen }

    /// The capture that runs.
    var stream: MicrophoneStream? { life.isStreaming ? run : nil }

    var counts: Counts {
        var counts = past
        if let run { counts.add(run) }
        return counts
    }

    // MARK: Requests

    /// Opens the microphone for the first time.
    func begin() { life.handle { $0.begin(at: $1) } }

    func demand(isLocked: Bool, wantsSound: Bool, _ wanted: SoundSubscriptionTable) {
        self.wanted = wanted
        run?.setWanted(wanted)
        if !wantsSound, isErrorOfStream { forgetError() }
        life.handle { $0.demand(isLocked: isLocked, wantsFrames: wantsSound, at: $1) }
    }

    /// Gets the microphone ready for an order, and keeps it so until ``release(_:)``. One order at a time.
    func hold(_ hold: DeviceLifecycle.Hold, then body: @escaping (Result<SoundSnapshot, BusError>) -> Void) {
        life.hold(hold, then: body)
    }

    /// The order is done.
    func release(_ report: MicrophoneDevice.Report) {
        take(report)
        life.handle { $0.release(at: $1) }
    }

    /// It is there, as these facts say: perhaps in another place, perhaps after it has been away (`isNew`).
    func plugged(_ facts: MicrophoneFacts, isNew: Bool) {
        thread.perform { microphone in
            microphone.source.plug(facts)
        } then: { [weak self] (result: Result<Bool, Never>) in
            guard let self, isNew || result.get() || error?.reason == .deviceDisconnected else { return }
            life.handle { $0.plugged(at: $1) }
        }
    }

    /// The microphone may have been connected or disconnected without an event: looks at it.
    func look() { life.handle { $0.plugged(at: $1) } }

    /// Closes it for good, then calls the body.
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
        thread.perform { microphone throws(SourceError) in
            let events = try microphone.open()
            return (events, microphone.report)
        } then: { [weak self] result in
            guard let self else { return }
            switch result {
            case .success((let queue, let report)):
                error = nil
                logger.debug("microphone opened")
                take(report)
                onReported?(report)
                if let queue { watch(queue) }
                onOpened?()
                life.handle { $0.opened(at: $1) }
            case .failure(let failure):
                failed("microphone can't be opened", failure)
                life.handle { $0.openFailed(at: $1) }
            }
        }
    }

    private func start() {
        thread.perform { microphone throws(SourceError) in
            let stream = try microphone.start()
            return (stream, microphone.report)
        } then: { [weak self] result in
            guard let self else { return }
            switch result {
            case .success((let stream, let report)):
                error = nil
                take(report)
                begin(stream)
            case .failure(let failure):
                failed("capture can't be started", failure, isOfStream: true)
                let reopen = failure.kind == .disconnected || failure.kind == .failed
                life.handle { $0.startFailed(reopen: reopen, isInUse: failure.kind == .inUse, at: $1) }
            }
        }
    }

    private func begin(_ stream: any SoundStream) {
        let run = MicrophoneStream(stream, device: device, socket, loop, silenceLimit: silenceLimit)
        self.run = run
        run.generation = generation
        run.onFirst = { [weak self] in self?.life.firstFrame() }
        run.onOverrun = { [weak self] in self?.onOverrun?($0, $1) }
        run.onRing = { [weak self] in self?.onRing?($0, $1) }
        run.onImpossible = { [weak self] in self?.onChange?() }
        run.onLost = { [weak self] failure in self?.lost("sound was lost", failure, isOfStream: true) }
        run.onFailure = { [weak self] in self?.onFailure?("sound can't be sent: \($0)") }
        run.setWanted(wanted)
        logger.debug("capture started", metadata: ["stream": "\(run.id)"])
        life.handle { $0.started(at: $1) }
    }

    private func stop() {
        run?.end()
        if let run { past.add(run) }
        run = nil
        thread.perform { microphone throws(SourceError) in
            try microphone.stop()
        } then: { [weak self] result in
            guard let self else { return }
            if case .failure(let failure) = result {
                logger.warning("capture can't be stopped in order", metadata: ["error": "\(failure)"])
            }
            life.handle { $0.stopped(at: $1) }
        }
    }

    private func close() {
        events?.end()
        events = nil
        if !life.mustReopen { forgetError() }
        thread.perform { microphone in
            microphone.close()
        } then: { [weak self] (_: Result<Void, Never>) in
            guard let self else { return }
            logger.debug("microphone closed")
            life.handle { $0.closed(at: $1) }
        }
    }

    private func lost(_ what: String, _ failure: SourceError, isOfStream: Bool = false) {
        failed(what, failure, isOfStream: isOfStream)
        life.handle { $0.lost(at: $1) }
    }

    // MARK: Events of the microphone

    private func watch(_ queue: any DeviceEventQueue) {
        let watch = DeviceEventReader(queue, loop, logger)
        watch.onEvents = { [weak self] _ in self?.read() }
        watch.onLost = { [weak self] failure in self?.lost("microphone was lost", failure) }
        events = watch
    }

    // An event says that something has changed; there are few controls, and they are read together.
    private func read() {
        // What changed after the microphone was asked is not in the answer that is still to come.
        mustReadAgain = isReading
        guard !isReading else { return }
        isReading = true
        thread.perform { microphone in
            // One that was closed or lost meanwhile says so elsewhere.
            _ = try? microphone.read()
            return microphone.report
        } then: { [weak self] (result: Result<MicrophoneDevice.Report, Never>) in
            guard let self else { return }
            isReading = false
            let before = snapshot?.configuration.controls ?? [:]
            take(result.get())
            let now = snapshot?.configuration.controls ?? [:]
            let names = Set(before.keys).union(now.keys).filter { before[$0] != now[$0] }
            let news = names.map { ($0, (old: before[$0], new: now[$0])) }
            if !news.isEmpty { onControls?(Dictionary(news) { first, _ in first }) }
            onChange?()
            if mustReadAgain { read() }
        }
    }

    private func take(_ report: MicrophoneDevice.Report) {
        snapshot = report.snapshot ?? snapshot
        for entry in report.notRestored where !notRestored.contains(entry) {
            logger.warning(
                "not as it was last set",
                metadata: ["what": "\(entry.path)", "wanted": "\(entry.wanted)", "why": "\(entry.why)"])
        }
        notRestored = report.notRestored
    }

    // An error that keeps it from opening stays, also when no client wants the microphone.
    private func forgetError() {
        guard error?.reason != .deviceDisconnected, error?.reason != .unauthorized else { return }
        error = nil
    }

    private func failed(_ what: String, _ failure: SourceError, isOfStream: Bool = false) {
        let error = BusError(failure, device: device)
        if error != self.error {
            logger.error("\(what)", metadata: ["error": "\(failure)", "reason": "\(error.reason.rawValue)"])
        }
        self.error = error
        isErrorOfStream = isOfStream
    }
}

extension MicrophoneController.Counts {
    fileprivate mutating func add(_ run: MicrophoneStream) {
        frames += run.frames
        lostFrames += run.lostFrames
        overruns += run.overruns
    }
}
