import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import Imaging
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Takes photos: has the device set and settled for each, keeps the frames that become photos, and has them made into files beside the
/// loop. One has the device at a time, in the order in which they came; the others wait.
final class PhotoDesk {
    private let device: String
    private let loop: Loop
    private let director: DeviceDirector
    private let frames: FrameDesk
    private let orders: OrderDesk
    private let logger: Logger
    /// Copies frames, so that the device has its slots again.
    private let copier: PhotoThread
    /// Makes files of them.
    private let maker: PhotoThread
    /// For copied frames, and files that go out.
    private let memory: PayloadMemory
    /// Bytes of frames that are being copied.
    private var copying = 0
    /// In the order in which they came.
    private var tasks: [PhotoTask] = []
    /// Who has the device.
    private var current: PhotoTask?
    /// The device is being set as it was.
    private var isPuttingBack = false
    private var whenPutBack: [() -> Void] = []
    private var whenEnded: (() -> Void)?

    /// Told when ``wantsFrames`` has changed.
    var onWish: (() -> Void)?
    /// Tells the coordinator how far a photo has come; false: it can't be told.
    var onProgress: ((_ job: String, PhotoProgress, _ members: JSONValue, Message?) -> Bool)?
    /// Why there are no frames, if so.
    var obstacle: (() -> BusError?)?

    private static let maximumTasks = 128
    private static let maximumWorks = 256
    /// How long the device is waited for, from one step to the next, milliseconds.
    private static let patience: Int64 = 20_000
    /// A scene that is darker is one for a flash.
    private static let dark = 60.0
    /// Frames after a flash of which one has its light.
    private static let flashFrames = 3
    private static let maximumCandidates = 8

    /// - Parameter budget: bytes that photos under way may have; nil: as the machine's memory allows.
    init(
        device: String, _ loop: Loop, _ director: DeviceDirector, _ frames: FrameDesk, _ orders: OrderDesk,
        budget: Int? = nil, logger: Logger
    ) throws(SystemError) {
        self.device = device
        self.loop = loop
        self.director = director
        self.frames = frames
        self.orders = orders
        self.logger = logger
        memory = PayloadMemory(budget: budget ?? PayloadMemory.defaultBudget)
        copier = try PhotoThread(loop, name: "photo-copy", capacity: Self.maximumWorks)
        maker = try PhotoThread(loop, name: "photo", capacity: Self.maximumWorks)
        frames.photoMeter.onLuma = { [weak self] in self?.measured($0) }
    }

    /// The device is to stream for a photo.
    var wantsFrames: Bool { current != nil }

    // MARK: Orders

    func handle(_ action: WorkerOrder.Action, _ answer: @escaping PhotoTask.Answer) {
        switch action {
        case .preparePhoto(let order): prepare(order, answer)
        case .takePhoto(let job, let time): take(job, at: time, answer)
        case .dropPhoto(let job): drop(job, answer)
        default: answer(.failure(BusError(.internalError, "\(device) was given something else as a photo.")))
        }
    }

    private func prepare(_ order: PhotoOrder, _ answer: @escaping PhotoTask.Answer) {
        guard whenEnded == nil else {
            return answer(.failure(BusError(.shuttingDown, "The worker of \(device) is ending.")))
        }
        guard !tasks.contains(where: { $0.order.job == order.job }) else {
            return answer(.failure(.invalidParams("job", "'\(order.job)' is under way already")))
        }
        guard tasks.count < Self.maximumTasks else {
            return answer(
                .failure(
                    BusError(
                        .limitExceeded, "Too many photos of \(device) are under way; take it when they are finished.",
                        ["limit": "photos", "maximum": JSONValue(Self.maximumTasks)])))
        }
        if let place = order.place, place.ids.count < order.settings.photosPerDevice {
            return answer(.failure(.invalidParams("place.ids", "are fewer than the photos")))
        }
        tasks.append(PhotoTask(order, PhotoMaker(order, device: device, memory), answer))
        startNext()
    }

    private func take(_ job: String, at time: Instant?, _ answer: @escaping PhotoTask.Answer) {
        guard let task = tasks.first(where: { $0.order.job == job }), task.stage == .ready else {
            return answer(.failure(.invalidParams("job", "no photo '\(job)' is ready")))
        }
        task.onTaken = answer
        task.stage = .taking
        task.shots = PhotoShots(
            task.count, interval: task.settings.interval, frame: director.stream?.frameTime ?? 33_333_333, at: time,
            now: MonotonicClock.now())
        tell(task, .willCapture)
        guard task.stage == .taking else { return }
        beginWaiting(task)
        if task.fires { fire(task) }
    }

    private func drop(_ job: String, _ answer: @escaping PhotoTask.Answer) {
        if let task = tasks.first(where: { $0.order.job == job }) {
            fail(task, BusError(.cancelled, "The photo was given up."))
        }
        afterPuttingBack { answer(.success([:])) }
    }

    private func afterPuttingBack(_ body: @escaping () -> Void) {
        if isPuttingBack || current?.stage == .over { whenPutBack.append(body) } else { body() }
    }

    /// The coordinator has gone, and with it whoever wanted photos; what has been taken for the library goes there.
    func abandon() {
        for task in tasks where task.stage != .processing || task.order.place == nil {
            fail(task, BusError(.cancelled, "The coordinator has gone."))
        }
    }

    /// The device is about to be set by order. What stands in there for a photo is put back before that.
    func interrupt() {
        guard let task = current, task.isSet, task.stage != .over else { return }
        fail(task, interruption)
    }

    private var interruption: BusError {
        BusError(
            .interrupted, "\(device) was set otherwise while the photo was being taken; take it again.",
            ["device": .string(device), "interruption": "reconfiguration"])
    }

    /// Something of the device has changed.
    func update() {
        guard let task = current, task.stage != .over else { return }
        if let error = obstacle?() { return fail(task, error) }
        guard task.settling != nil, let snapshot = director.snapshot else { return }
        task.settling?.told(isAdjusting: snapshot.isAdjusting, at: MonotonicClock.now())
    }

    /// Gives all photos up but those that are being made into files; calls the body when the device is as it was and those are finished.
    func end(then body: @escaping () -> Void) {
        whenEnded = body
        for task in tasks where task.stage != .processing {
            fail(task, BusError(.shuttingDown, "The worker of \(device) is ending."))
        }
        tellIfEnded()
    }

    private func tellIfEnded() {
        guard let body = whenEnded, tasks.isEmpty, !isPuttingBack, current == nil else { return }
        whenEnded = nil
        body()
    }

    /// The process ends.
    func endThreads() {
        copier.end()
        maker.end()
    }

    // MARK: One after the other

    private func startNext() {
        guard current == nil, !isPuttingBack, let task = tasks.first(where: { $0.stage == .waiting }) else {
            return tellIfEnded()
        }
        current = task
        task.stage = .preparing
        beginWaiting(task)
        frames.onPhotoFrame = { [weak self] in self?.took($0, $1) }
        director.isAwaited = true
        onWish?()
        guard isPresent(task) else { return }
        if let error = obstacle?() { return fail(task, error) }
        guard task.settings.highResolution || task.settings.flash != .off else { return settle(task) }
        let settings = task.settings
        set(task) { keeper throws(BusError) in
            try keeper.prepare(try PhotoChange.base(settings, try keeper.look()))
        } then: { [weak self] _ in
            self?.settle(task)
        }
    }

    /// It has the device and goes on.
    private func isPresent(_ task: PhotoTask) -> Bool { current === task && task.stage != .over }

    // The device has to come to something in time.
    private func beginWaiting(_ task: PhotoTask, milliseconds: Int64 = patience) {
        loop.cancel(task.timer)
        task.timer = loop.schedule(afterMilliseconds: milliseconds) { [weak self] in self?.waitedTooLong(task) }
    }

    private func waitedTooLong(_ task: PhotoTask) {
        let why = task.stage == .ready ? "nobody took the photo" : "\(device) gave no picture for it"
        fail(
            task,
            BusError(
                .interrupted, "The photo was given up, as \(why) in time; take it again.",
                ["device": .string(device), "interruption": "timeout"]))
    }

    // Whatever comes of a frame that has just come is done after it has gone to all others.
    private func soon(_ task: PhotoTask, _ body: @escaping () -> Void) {
        loop.schedule(at: 0) { [weak self] in if self?.isPresent(task) == true { body() } }
    }

    private func fail(_ task: PhotoTask, _ error: BusError) {
        guard task.stage != .over else { return }
        loop.cancel(task.timer)
        task.fail(error)
        tasks.removeAll { $0 === task }
        // What is being set for it is put back when it is set.
        if current === task, !task.isSetting { leave(task) }
        tellIfEnded()
    }

    /// The device is the next one's.
    private func leave(_ task: PhotoTask) {
        current = nil
        frames.onPhotoFrame = nil
        frames.photoMeter.stop()
        director.isAwaited = false
        task.settlesSince = nil
        task.settling = nil
        if task.isSet {
            putBack(task)
        } else {
            wentFree()
        }
    }

    private func putBack(_ task: PhotoTask) {
        isPuttingBack = true
        task.isSet = false
        orders.work(task.setsFormat ? .quiet : .open) { keeper throws(BusError) in
            let last = try? keeper.look()
            try keeper.endStandIn()
            return last
        } then: { [weak self] result in
            guard let self else { return }
            if case .failure(let error) = result {
                logger.warning("a photo's settings can't be put back", metadata: ["error": "\(error.message)"])
            }
            isPuttingBack = false
            if task.stage == .processing { describe(task, (try? result.get()) ?? director.snapshot) }
            wentFree()
        }
    }

    private func wentFree() {
        let bodies = whenPutBack
        whenPutBack = []
        for body in bodies { body() }
        // Not from within: whoever left may be in the midst of something.
        loop.schedule(at: 0) { [weak self] in
            self?.onWish?()
            self?.startNext()
        }
    }

    // MARK: The device

    /// Sets what the plan says, and calls the body with how the device was before, unless the photo fails.
    private func set(
        _ task: PhotoTask, _ plan: @escaping (DeviceKeeper) throws(BusError) -> PreparedChange?,
        then body: @escaping (DeviceSnapshot?) -> Void
    ) {
        orders.work(.open) { keeper throws(BusError) in
            (try plan(keeper), keeper.snapshot)
        } then: { [weak self] result in
            guard let self, isPresent(task) else { return }
            switch result {
            case .failure(let error): fail(task, error)
            case .success((nil, let before)): body(before)
            case .success((let change?, let before)): set(task, change, before, body)
            }
        }
    }

    private func set(
        _ task: PhotoTask, _ change: PreparedChange, _ before: DeviceSnapshot?,
        _ body: @escaping (DeviceSnapshot?) -> Void
    ) {
        task.isSetting = true
        let needsQuiet = before.map(change.needsQuiet) ?? true
        orders.work(needsQuiet ? .quiet : .open, sets: change.plan) { keeper throws(BusError) in
            try keeper.standIn(change)
        } then: { [weak self] result in
            task.isSetting = false
            if case .success = result {
                task.isSet = true
                task.setsFormat = task.setsFormat || change.plan.format != nil
            }
            guard let self else { return }
            guard task.stage != .over else { return leave(task) }
            switch result {
            case .failure(let error): fail(task, error)
            case .success: body(before)
            }
        }
    }

    private func settle(_ task: PhotoTask) {
        task.settlesSince = MonotonicClock.now()
        task.settling = nil
        task.isHeld = false
    }

    /// A whole frame has come.
    private func took(_ frame: FrameJob, _ run: StreamRun) {
        guard let task = current, task.stage != .over else { return }
        let start = run.exposureStart(frame.facts)
        if let since = task.settlesSince {
            settleFurther(task, run, exposedFrom: start, since: since)
            guard task.settlesSince == nil else { return }
        }
        guard task.stage == .taking, !task.isHeld else { return }
        guard run.layout == task.layout else {
            task.isHeld = true
            return soon(task) { [weak self] in
                guard let self else { return }
                fail(task, interruption)
            }
        }
        if task.flash != nil {
            keepCandidate(frame, run, task, start)
        } else if !task.fires, task.shots?.wants(exposedFrom: start) == true {
            keepShot(frame, run, task, start)
        }
    }

    private func settleFurther(_ task: PhotoTask, _ run: StreamRun, exposedFrom start: Instant, since: Instant) {
        guard let snapshot = director.snapshot else { return }
        if task.settling == nil {
            let settling = PhotoSettling(
                since: since, frame: run.frameTime, isTold: snapshot.tellsExposure, isAdjusting: snapshot.isAdjusting,
                isSet: task.isSet)
            task.settling = settling
            if !settling.isTold || wantsLuma(task) { frames.photoMeter.ask(Self.whole, notBefore: since) }
        }
        judge(task, task.settling?.took(exposedFrom: start) ?? .waiting)
    }

    private static let whole = MeteredRegion(aroundX: 0.5, y: 0.5)

    // Whether a flash is needed is seen in the picture.
    private func wantsLuma(_ task: PhotoTask) -> Bool { task.settings.flash == .auto && task.luma == nil }

    private func measured(_ luma: Double?) {
        guard let task = current, task.settling != nil else { return }
        task.luma = luma ?? Self.dark
        let verdict = task.settling?.measured(luma) ?? .waiting
        judge(task, verdict)
        guard task.settling?.isTold == false, luma != nil else { return }
        frames.photoMeter.ask(Self.whole, notBefore: task.settlesSince ?? 0)
    }

    private func judge(_ task: PhotoTask, _ verdict: PhotoSettling.Verdict) {
        guard verdict != .waiting, verdict == .late || !wantsLuma(task) else { return }
        task.settlesSince = nil
        task.settling = nil
        frames.photoMeter.stop()
        task.isSettled = verdict == .settled
        if task.stage == .preparing {
            soon(task) { [weak self] in self?.settled(task) }
        } else if task.fires {
            soon(task) { [weak self] in self?.fire(task) }
        }
    }

    // The camera has found its exposure as it is; a bracket begins from there.
    private func settled(_ task: PhotoTask) {
        guard let bracket = task.settings.bracket, task.step == nil else { return becomeReady(task) }
        orders.work(.open) { keeper throws(BusError) in
            try PhotoChange.neutral(bracket, try keeper.look())
        } then: { [weak self] result in
            guard let self, isPresent(task) else { return }
            switch result {
            case .failure(let error): fail(task, error)
            case .success(let neutral):
                task.neutral = neutral
                setStep(0, bracket, task) { _ in }
            }
        }
    }

    private func setStep(
        _ step: Int, _ bracket: PhotoBracket, _ task: PhotoTask, then body: @escaping (DeviceSnapshot?) -> Void
    ) {
        let neutral = task.neutral
        set(task) { keeper throws(BusError) in
            try keeper.prepare(PhotoChange.step(bracket, step, neutral))
        } then: { [weak self] before in
            body(before)
            task.step = step
            self?.settle(task)
        }
    }

    private func becomeReady(_ task: PhotoTask) {
        guard let run = director.stream, let snapshot = director.snapshot else { return settle(task) }
        let layout = run.layout
        let flash = task.settings.flash
        task.fires = flash == .on || (flash == .auto && (task.luma ?? Self.dark) < Self.dark)
        task.layout = layout
        let photos = task.maker
        let isQueued = maker.perform {
            photos.prepare(layout)
        } then: { [weak self] result in
            guard let self, isPresent(task) else { return }
            switch result {
            case .failure(let error): fail(task, error)
            case .success(let plan): answerReady(task, plan, layout, snapshot)
            }
        }
        if !isQueued { fail(task, .noMemoryForPhotos(device)) }
    }

    private func answerReady(
        _ task: PhotoTask, _ plan: PhotoMaker.Plan, _ layout: FrameLayout, _ snapshot: DeviceSnapshot
    ) {
        let stabilization = snapshot.values[CameraControlName.videoStabilizationMode.rawValue]?.string
        let resolution = PhotoResolution(
            device: device, format: plan.fileType, dimensions: plan.dimensions, pixelFormat: layout.pixelFormat,
            flash: task.fires, stabilization: stabilization.map { $0 != "off" } ?? false,
            highResolution: task.settings.highResolution, thumbnail: plan.thumbnail,
            bracket: task.settings.bracket.map {
                PhotoChange.given($0, task.neutral, snapshot.cameraControls)
            }, photos: task.count)
        task.stage = .ready
        beginWaiting(task, milliseconds: WorkerOrder.photoPatience)
        let answer = task.onPrepared
        task.onPrepared = nil
        answer?(.success(["resolution": resolution.json]))
    }

    // MARK: Frames

    /// Has a frame copied, and calls the body with it on the loop; nil: there was no memory.
    ///
    /// - Returns: false: the frame can't be had; the next one may.
    private func keep(
        _ frame: FrameJob, _ run: StreamRun, _ task: PhotoTask, _ start: Instant, measures: Bool = false,
        then body: @escaping (KeptFrame?, _ luma: Double?) -> Void
    ) -> Bool {
        let plan = run.payloadPlan
        guard let count = plan.count(bytesUsed: frame.bytesUsed) else { return false }
        if memory.exceedsAll(count) {
            soon(task) { [weak self] in
                guard let self else { return }
                fail(task, .noMemoryForPhotos(device))
            }
            return false
        }
        guard memory.hasRoom(for: count, beside: copying), run.retain(frame) else { return false }
        copying += count
        let (memory, layout, stream, source) = (memory, run.layout, run.id, run.timestampSource)
        let isQueued = copier.perform { () -> (KeptFrame?, Double?) in
            let bytes = Message()
            guard memory.fill(bytes, count: count, { plan.copy(frame.regions, bytesUsed: frame.bytesUsed, into: $0) })
            else { return (nil, nil) }
            let kept = KeptFrame(layout, frame.facts, stream: stream, source, start: start, bytes: bytes)
            return (kept, measures ? kept.luma() : nil)
        } then: { [weak self] kept, luma in
            run.release(frame)
            self?.copying -= count
            body(kept, luma)
        }
        if !isQueued {
            copying -= count
            run.release(frame)
        }
        return isQueued
    }

    private func keepShot(_ frame: FrameJob, _ run: StreamRun, _ task: PhotoTask, _ start: Instant) {
        let index = task.taken.count
        let isKept = keep(frame, run, task, start) { [weak self] kept, _ in
            guard let self, isPresent(task) else { return }
            guard let kept else { return fail(task, .noMemoryForPhotos(device)) }
            task.taken[index].frame = kept
            task.taken[index].isKept = true
            gotFrame(task)
        }
        guard isKept else { return }
        add(task, exposedFrom: start)
    }

    /// A frame is the next photo.
    private func add(_ task: PhotoTask, exposedFrom start: Instant, _ frame: KeptFrame? = nil, flashFired: Bool? = nil) {
        let index = task.shots?.take(exposedFrom: start) ?? 0
        task.taken.append(
            PhotoTask.Shot(
                frame: frame, isKept: frame != nil, bias: task.bias, flashFired: flashFired,
                isSettled: task.isSettled))
        let isLast = task.shots?.isOver ?? true
        // No more frames until it is set for the next.
        task.isHeld = isLast || task.settings.bracket != nil
        soon(task) { [weak self] in self?.added(task, index, isLast: isLast) }
    }

    private func added(_ task: PhotoTask, _ index: Int, isLast: Bool) {
        beginWaiting(task, milliseconds: Self.patience + task.settings.interval / 1_000_000)
        if !isLast, let bracket = task.settings.bracket {
            setStep(index + 1, bracket, task) { [weak self] before in
                self?.describe(task, before, only: index)
            }
        } else if !isLast, task.fires {
            fire(task)
        }
        // The last one of what was set is looked at when it is put back.
        if index == 0, task.settings.bracket == nil, !isLast || !task.isSet { look(task) }
        gotFrame(task)
    }

    // What the camera does by itself it doesn't always tell.
    private func look(_ task: PhotoTask) {
        orders.work(.open) { keeper throws(BusError) in
            try keeper.look()
        } then: { [weak self] result in
            guard let self, task.stage != .over else { return }
            describe(task, (try? result.get()) ?? director.snapshot)
        }
    }

    /// How the device was when frames were taken.
    ///
    /// - Parameter index: of which; nil: of all that nothing is known of.
    private func describe(_ task: PhotoTask, _ snapshot: DeviceSnapshot?, only index: Int? = nil) {
        let reader = PhotoFactsReader(snapshot)
        if let index { task.taken[index].reader = reader } else if task.reader == nil { task.reader = reader }
        process(task)
    }

    private func gotFrame(_ task: PhotoTask) {
        process(task)
        guard task.stage == .taking, task.isWhole else { return }
        task.stage = .processing
        loop.cancel(task.timer)
        tell(task, .didCapture)
        guard task.stage == .processing else { return }
        if current === task { leave(task) }
        finishIfWhole(task)
    }

    private func tell(_ task: PhotoTask, _ progress: PhotoProgress, _ members: JSONValue = [:], _ file: Message? = nil) {
        guard onProgress?(task.order.job, progress, members, file) == false else { return }
        fail(
            task,
            BusError(
                .limitExceeded, "The coordinator takes no further photos for now.",
                ["device": .string(device), "limit": "photoReports"]))
    }

    // MARK: The flash

    private func fire(_ task: PhotoTask) {
        task.flash = PhotoTask.Flash()
        orders.work(.open) { keeper throws(BusError) in
            try keeper.fireFlash()
        } then: { [weak self] result in
            guard let self, isPresent(task) else { return }
            switch result {
            case .failure(let error): fail(task, error)
            case .success(let time): task.flash?.fired = time
            }
        }
    }

    // Which frame has the light isn't told by its time: the flash may have come while the driver was still in its call.
    private func keepCandidate(_ frame: FrameJob, _ run: StreamRun, _ task: PhotoTask, _ start: Instant) {
        guard var flash = task.flash, flash.after < Self.flashFrames else { return }
        let isKept = keep(frame, run, task, start, measures: true) { [weak self] kept, luma in
            guard let self, isPresent(task), task.flash != nil else { return }
            guard let kept else { return fail(task, .noMemoryForPhotos(device)) }
            task.flash?.pending -= 1
            task.flash?.candidates.append(PhotoTask.Flash.Candidate(frame: kept, luma: luma))
            chooseLit(task)
        }
        guard isKept else { return }
        flash.pending += 1
        if let fired = flash.fired, start >= fired { flash.after += 1 }
        // A driver that takes long has had frames come meanwhile.
        if flash.candidates.count >= Self.maximumCandidates { flash.candidates.removeFirst() }
        task.flash = flash
    }

    private func chooseLit(_ task: PhotoTask) {
        guard let flash = task.flash, let fired = flash.fired, flash.after >= Self.flashFrames, flash.pending == 0 else {
            return
        }
        task.flash = nil
        let lumas = flash.candidates.compactMap(\.luma)
        let brightest = flash.candidates.max { $0.luma ?? 0 < $1.luma ?? 0 }
        var lit = flash.candidates.first { $0.frame.start >= fired } ?? flash.candidates.last
        if let brightest, let luma = brightest.luma, let least = lumas.min(), luma > least * 1.15 + 2 { lit = brightest }
        guard let lit else { return }
        add(task, exposedFrom: lit.frame.start, lit.frame, flashFired: true)
    }

    // MARK: Files

    private func process(_ task: PhotoTask) {
        for index in task.taken.indices {
            let shot = task.taken[index]
            guard let frame = shot.frame, var reader = shot.reader ?? task.reader, !shot.isBegun else { continue }
            (reader.bias, reader.flashFired) = (shot.bias, shot.flashFired)
            let photos = task.maker
            let isQueued = maker.perform { [reader] in
                photos.make(frame, index: index, reader, isSettled: shot.isSettled)
            } then: { [weak self] result in
                guard let self else { return }
                made(task, result)
                // One that found no room in the queue has some now.
                for other in tasks { process(other) }
            }
            guard isQueued else { return }
            task.taken[index].isBegun = true
        }
    }

    private func made(_ task: PhotoTask, _ result: Result<MadePhoto, BusError>) {
        guard task.stage != .over else { return }
        switch result {
        case .failure(let error): fail(task, error)
        case .success(let photo):
            task.taken[photo.result.index].frame = nil
            task.results.append(photo.result)
            tell(task, .processed, ["photo": photo.result.json], photo.attachment)
            finishIfWhole(task)
        }
    }

    private func finishIfWhole(_ task: PhotoTask) {
        guard task.stage == .processing, task.results.count == task.count else { return }
        task.stage = .over
        tasks.removeAll { $0 === task }
        let answer = task.onTaken
        task.onTaken = nil
        answer?(.success(["photos": .array(task.results.sorted { $0.index < $1.index }.map(\.json))]))
        tellIfEnded()
    }
}
