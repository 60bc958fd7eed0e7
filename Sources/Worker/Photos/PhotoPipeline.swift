import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import Delivery
import Imaging
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Takes photos: sets the device for each and waits until it has settled, keeps the frames that become photos, and has
/// files made of them on other threads. Concurrent requests are queued: one has the device at a time, in the order of
/// arrival.
final class PhotoPipeline {
    let device: String
    let loop: Loop
    let controller: CameraController
    let frames: FrameRelay
    let orders: OrderService
    let logger: Logger
    /// Copies frames, so that the device has its slots again.
    let copier: PhotoThread
    /// Makes files of them.
    let maker: PhotoThread
    /// For copied frames.
    let memory: PayloadMemory
    /// For files that go out.
    let files: PayloadMemory
    /// Bytes of frames that are being copied.
    var copying = 0
    /// In the order in which they came.
    var tasks: [PhotoTask] = []
    /// Pictures of live photos that wait for their movies, by their jobs.
    var held: [String: HeldPhoto] = [:]
    /// The request that has the device.
    var current: PhotoTask?
    /// The device is being set as it was.
    var isPuttingBack = false
    /// What is about to be set.
    var nextStandIn: StandIn?
    var whenPutBack: [() -> Void] = []
    var whenEnded: (() -> Void)?

    /// Called when ``wantsFrames`` has changed.
    var onDemandChange: (() -> Void)?
    /// Reports the progress of a photo to the coordinator; false: it cannot be reported.
    var onProgress: ((_ job: String, PhotoProgress, _ members: JSONValue, Message?) -> Bool)?
    /// Called before something is set for a photo: ``standIn`` contains it.
    var onStandIn: (() -> Void)?
    /// Why there are no frames, if so.
    var obstacle: (() -> BusError?)?

    static let maximumTasks = 128
    static let maximumWorks = 256
    /// A scene that is darker is one for a flash.
    static let dark = 60.0
    /// Frames after a flash of which one has its light.
    static let flashFrames = 3
    static let maximumCandidates = 8

    /// - Parameter budget: bytes that frames for photos may have, and their files as many; nil: as the machine's memory
    ///   allows.
    init(
        device: String, _ loop: Loop, _ controller: CameraController, _ frames: FrameRelay, _ orders: OrderService,
        budget: Int? = nil, logger: Logger
    ) throws(SystemError) {
        self.device = device
        self.loop = loop
        self.controller = controller
        self.frames = frames
        self.orders = orders
        self.logger = logger
        memory = PayloadMemory(budget: budget ?? PayloadMemory.defaultBudget)
        files = PayloadMemory(budget: budget ?? PayloadMemory.defaultBudget)
        copier = try PhotoThread(loop, name: "photo-copy", capacity: Self.maximumWorks)
        maker = try PhotoThread(loop, name: "photo", capacity: Self.maximumWorks)
        frames.photoMeter.onLuma = { [weak self] in self?.measured($0) }
    }

    /// The device is to stream for a photo.
    var wantsFrames: Bool { current != nil || tasks.contains { $0.stage == .waiting } }

    /// What is set at the device for photos, or about to be.
    var standIn: StandIn? { nextStandIn ?? controller.cache.standIn }

    // MARK: Orders

    func handle(_ action: WorkerOrder.Action, _ answer: @escaping PhotoTask.Answer) {
        switch action {
        case .preparePhoto(let order): prepare(order, answer)
        case .takePhoto(let job, let time): take(job, at: time, answer)
        case .publishPhoto(let job, let movie, let file): publish(job, movie, file, answer)
        case .keepFromLibrary(let job):
            tasks.first { $0.order.job == job }?.maker.keepFromLibrary()
            answer(.success([:]))
        case .dropPhoto(let job): drop(job, answer)
        default: answer(.failure(BusError(.internalError, "\(device) received an order that is not about photos.")))
        }
    }

    func prepare(_ order: PhotoOrder, _ answer: @escaping PhotoTask.Answer) {
        guard whenEnded == nil else {
            return answer(.failure(BusError(.shuttingDown, "The worker of \(device) is ending.")))
        }
        guard !tasks.contains(where: { $0.order.job == order.job }), held[order.job] == nil else {
            return answer(.failure(.invalidParams("job", "'\(order.job)' is under way already")))
        }
        guard tasks.count + held.count < Self.maximumTasks else {
            return answer(
                .failure(
                    BusError(
                        .limitExceeded, "Too many photos of \(device) are under way; take it when they are finished.",
                        ["limit": "photos", "maximum": JSONValue(Self.maximumTasks)])))
        }
        if let place = order.place, place.ids.count < order.settings.filesPerDevice {
            return answer(.failure(.invalidParams("place.ids", "must have one id per file")))
        }
        guard order.identifier == nil || order.settings.filesPerDevice == 1 else {
            return answer(.failure(.invalidParams("livePhoto", "can't be combined with several photos")))
        }
        if let moment = order.moment { return preparePast(order, moment, answer) }
        tasks.append(PhotoTask(order, PhotoMaker(order, device: device, files), answer))
        startNext()
    }

    func take(_ job: String, at time: Instant?, _ answer: @escaping PhotoTask.Answer) {
        guard let task = tasks.first(where: { $0.order.job == job }), task.stage == .ready else {
            return answer(
                .failure(
                    BusError(
                        .interrupted, "\(device) did not finish the photo in time; take it again.",
                        ["device": .string(device), "interruption": "timeout"])))
        }
        task.onTaken = answer
        task.stage = .taking
        if let frame = task.past { return takePast(task, frame) }
        task.shots = PhotoShots(
            task.count, interval: task.settings.interval,
            frame: controller.stream?.frameTime ?? FrameDuration.usual.nanoseconds, at: time,
            now: MonotonicClock.now())
        tell(task, .willCapture)
        guard task.stage == .taking else { return }
        beginWaiting(task)
    }

    func drop(_ job: String, _ answer: @escaping PhotoTask.Answer) {
        if let task = tasks.first(where: { $0.order.job == job }) {
            fail(task, BusError(.cancelled, "The photo was cancelled."))
        }
        afterForgetting(job) { [weak self] in self?.afterPuttingBack { answer(.success([:])) } }
    }

    func afterPuttingBack(_ body: @escaping () -> Void) {
        if isPuttingBack || current?.stage == .over { whenPutBack.append(body) } else { body() }
    }

    /// The coordinator has ended, and with it the requests for photos. Photos taken for the library are stored there,
    /// except live photos, whose movies do not come any more.
    func abandon() {
        for task in tasks where task.stage != .processing || task.order.place == nil || task.order.isHeldBack {
            fail(task, BusError(.cancelled, "The coordinator has ended."))
        }
        forgetHeld()
    }

    /// The device is about to be set by order. What stands in there for a photo is put back before that.
    func interrupt() {
        guard let task = current, task.isSet, task.stage != .over else { return }
        fail(task, interruption)
    }

    var interruption: BusError {
        BusError(
            .interrupted, "\(device) was changed while the photo was being taken; take it again.",
            ["device": .string(device), "interruption": "reconfiguration"])
    }

    /// Something of the device has changed.
    func update() {
        guard let task = current, task.stage != .over else { return }
        if let error = obstacle?() ?? frames.damage { return fail(task, error) }
        guard task.settling != nil, let snapshot = controller.snapshot else { return }
        task.settling?.told(isAdjusting: snapshot.isAdjusting, at: MonotonicClock.now())
    }

    /// Gives all photos up but those that are being made into files and wait for nothing else; calls the body when the
    /// device is as it was and those are finished.
    func end(then body: @escaping () -> Void) {
        whenEnded = body
        for task in tasks where task.stage != .processing || task.order.isHeldBack {
            fail(task, BusError(.shuttingDown, "The worker of \(device) is ending."))
        }
        forgetHeld()
        tellIfEnded()
    }

    func tellIfEnded() {
        guard let body = whenEnded, tasks.isEmpty, held.isEmpty, !isPuttingBack, current == nil else { return }
        whenEnded = nil
        body()
    }

    /// The process ends.
    func endThreads() {
        copier.end()
        maker.end()
    }

    // MARK: One after the other

    func startNext() {
        guard current == nil, !isPuttingBack, let task = tasks.first(where: { $0.stage == .waiting }) else {
            return tellIfEnded()
        }
        current = task
        task.stage = .preparing
        beginWaiting(task)
        frames.onPhotoFrame = { [weak self] in self?.took($0, $1) }
        controller.isAwaited = true
        onDemandChange?()
        guard isPresent(task) else { return }
        if let error = obstacle?() ?? frames.damage { return fail(task, error) }
        guard task.settings.changesSize || task.settings.flash != .off else { return settle(task) }
        let (settings, device) = (task.settings, device)
        set(task) { camera throws(BusError) in
            try camera.prepare(try PhotoChange.base(settings, try camera.look(), of: device))
        } then: { [weak self] _ in
            self?.settle(task)
        }
    }

    /// The request gets the device and continues.
    func isPresent(_ task: PhotoTask) -> Bool { current === task && task.stage != .over }

    // The device has to come to something in time: from one step to the next as long as a slow one takes for its
    // frames.
    func beginWaiting(_ task: PhotoTask, milliseconds: Int64? = nil, beside: Int64 = 0) {
        loop.cancel(task.timer)
        let limit =
            milliseconds ?? WorkerOrder.settling(task.settings, frame: controller.stream?.frameTime ?? 0) + beside
        task.timer = loop.schedule(afterMilliseconds: limit) { [weak self] in self?.waitedTooLong(task) }
    }

    func waitedTooLong(_ task: PhotoTask) {
        let why = task.stage == .ready ? "no worker took the photo" : "\(device) gave no picture for it"
        fail(
            task,
            BusError(
                .interrupted, "The photo was cancelled because \(why) in time; take it again.",
                ["device": .string(device), "interruption": "timeout"]))
    }

    // Whatever comes of a frame that has just come is done after it has gone to all others.
    func soon(_ task: PhotoTask, _ body: @escaping () -> Void) {
        loop.schedule(at: 0) { [weak self] in if self?.isPresent(task) == true { body() } }
    }

    func fail(_ task: PhotoTask, _ error: BusError) {
        guard task.stage != .over else { return }
        loop.cancel(task.timer)
        task.fail(error)
        forget(task.order.job)
        tasks.removeAll { $0 === task }
        // What is being set for it is put back when it is set.
        if current === task, !task.isSetting { leave(task) }
        tellIfEnded()
    }

    /// The device is the next one's.
    func leave(_ task: PhotoTask) {
        current = nil
        frames.onPhotoFrame = nil
        frames.photoMeter.stop()
        controller.isAwaited = false
        task.settlesSince = nil
        task.settling = nil
        if task.isSet {
            putBack(task)
        } else {
            wentFree()
        }
    }

    func putBack(_ task: PhotoTask) {
        isPuttingBack = true
        task.isSet = false
        orders.work(task.setsFormat ? .quiet : .open) { camera throws(BusError) in
            let last = try? camera.look()
            try camera.endStandIn()
            return last
        } then: { [weak self] result in
            guard let self else { return }
            if case .failure(let error) = result {
                logger.warning("a photo's settings can't be put back", metadata: ["error": "\(error.message)"])
            }
            isPuttingBack = false
            if task.stage == .processing { describe(task, (try? result.get()) ?? controller.snapshot) }
            wentFree()
        }
    }

    func wentFree() {
        let bodies = whenPutBack
        whenPutBack = []
        for body in bodies { body() }
        // Later, from the loop: the caller may be in the middle of something.
        loop.schedule(at: 0) { [weak self] in
            self?.startNext()
            self?.onDemandChange?()
        }
    }
}
