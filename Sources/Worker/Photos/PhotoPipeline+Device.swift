import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import Imaging
import JSON
import LinuxIO
import Logging
import ZeroMQ

// How the device is set for a photo, and when it has found its exposure.

extension PhotoPipeline {
    /// Sets what the plan says, and calls the body with how the device was before, unless the photo fails.
    func set(
        _ task: PhotoTask, _ plan: @escaping (CameraDevice) throws(BusError) -> PreparedChange?,
        then body: @escaping (DeviceSnapshot?) -> Void
    ) {
        orders.work(.open) { camera throws(BusError) in
            (try plan(camera), camera.snapshot)
        } then: { [weak self] result in
            guard let self, isPresent(task) else { return }
            switch result {
            case .failure(let error): fail(task, error)
            case .success((nil, let before)): body(before)
            case .success((let change?, let before)): set(task, change, before, body)
            }
        }
    }

    func set(
        _ task: PhotoTask, _ change: PreparedChange, _ before: DeviceSnapshot?,
        _ body: @escaping (DeviceSnapshot?) -> Void
    ) {
        task.isSetting = true
        // Known to others before it is so: this process may not live to put it back.
        nextStandIn = before.map { StandIn(change.plan, before: $0.configuration, beside: standIn) }
        onStandIn?()
        let needsQuiet = before.map(change.needsQuiet) ?? true
        orders.work(needsQuiet ? .quiet : .open, sets: change.plan) { camera throws(BusError) in
            try camera.standIn(change)
        } then: { [weak self] result in
            task.isSetting = false
            self?.nextStandIn = nil
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

    func settle(_ task: PhotoTask) {
        task.settlesSince = MonotonicClock.now()
        task.settling = nil
        task.isHeld = false
        beginWaiting(task)
    }

    /// A whole frame has come.
    func took(_ frame: FrameJob, _ run: CameraStream) {
        guard let task = current, task.stage != .over else { return }
        let start = run.exposureStart(frame.facts)
        if let since = task.settlesSince {
            settleFurther(task, run, exposedFrom: start, since: since)
            guard task.settlesSince == nil else { return }
        }
        guard task.stage == .taking, !task.isHeld else { return }
        guard task.layout.map(run.layout.isSame) == true else {
            task.isHeld = true
            return soon(task) { [weak self] in
                guard let self else { return }
                fail(task, interruption)
            }
        }
        if task.flash != nil {
            keepCandidate(frame, run, task, start)
        } else if task.fires {
            // The next frame is to have its light.
            guard task.shots?.wants(exposedFrom: start + run.frameTime) == true else { return }
            task.flash = PhotoTask.Flash()
            soon(task) { [weak self] in self?.fire(task) }
        } else if task.shots?.wants(exposedFrom: start) == true {
            keepShot(frame, run, task, start)
        }
    }

    func settleFurther(_ task: PhotoTask, _ run: CameraStream, exposedFrom start: Instant, since: Instant) {
        guard let snapshot = controller.snapshot else { return }
        if task.settling == nil {
            let settling = PhotoSettling(
                since: since, frame: run.frameTime, isTold: snapshot.tellsExposure, isAdjusting: snapshot.isAdjusting,
                isSet: task.isSet)
            task.settling = settling
            // By now it is known how long its frames take.
            beginWaiting(task)
            if !settling.isTold || wantsLuma(task) { frames.photoMeter.ask(Self.whole, notBefore: since) }
        }
        judge(task, task.settling?.took(exposedFrom: start) ?? .waiting)
    }

    static let whole = MeteredRegion(aroundX: 0.5, y: 0.5)

    // Whether a flash is needed is seen in the picture.
    func wantsLuma(_ task: PhotoTask) -> Bool { task.settings.flash == .auto && task.luma == nil }

    func measured(_ luma: Double?) {
        guard let task = current, task.settling != nil else { return }
        task.luma = luma ?? Self.dark
        let verdict = task.settling?.measured(luma) ?? .waiting
        judge(task, verdict)
        guard task.settling?.isTold == false, luma != nil else { return }
        frames.photoMeter.ask(Self.whole, notBefore: task.settlesSince ?? 0)
    }

    func judge(_ task: PhotoTask, _ verdict: PhotoSettling.Verdict) {
        guard verdict != .waiting, verdict == .late || !wantsLuma(task) else { return }
        task.settlesSince = nil
        task.settling = nil
        frames.photoMeter.stop()
        task.isSettled = verdict == .settled
        if task.stage == .preparing {
            soon(task) { [weak self] in self?.settled(task) }
        }
    }

    // The camera has found its exposure as it is; a bracket begins from there.
    func settled(_ task: PhotoTask) {
        guard let bracket = task.settings.bracket, task.step == nil else { return becomeReady(task) }
        let device = device
        orders.work(.open) { camera throws(BusError) in
            try PhotoChange.neutral(bracket, try camera.look(), of: device)
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

    func setStep(
        _ step: Int, _ bracket: PhotoBracket, _ task: PhotoTask, then body: @escaping (DeviceSnapshot?) -> Void
    ) {
        let neutral = task.neutral
        set(task) { camera throws(BusError) in
            try camera.prepare(PhotoChange.step(bracket, step, neutral))
        } then: { [weak self] before in
            body(before)
            task.step = step
            self?.settle(task)
        }
    }

    func becomeReady(_ task: PhotoTask) {
        guard let run = controller.stream, let snapshot = controller.snapshot else { return settle(task) }
        let layout = run.layout
        let flash = task.settings.flash
        task.fires = flash == .on || (flash == .auto && (task.luma ?? Self.dark) < Self.dark)
        task.layout = layout
        let photos = task.maker
        // Not behind the files of earlier photos, which may take as long as their disk does.
        let isQueued = copier.perform {
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

    func answerReady(
        _ task: PhotoTask, _ plan: PhotoMaker.Plan, _ layout: FrameLayout, _ snapshot: DeviceSnapshot?
    ) {
        let stabilization = snapshot?.values[CameraControlName.videoStabilizationMode.rawValue]?.string
        let resolution = PhotoResolution(
            device: device, format: plan.fileType, dimensions: plan.dimensions,
            pixelFormat: controller.stream?.layout.pixelFormat ?? layout.pixelFormat,
            flash: task.fires, stabilization: stabilization.map { $0 != "off" } ?? false,
            highResolution: task.settings.highResolution, raw: plan.raw, thumbnail: plan.thumbnail,
            bracket: task.settings.bracket.flatMap { bracket in
                snapshot.map { PhotoChange.given(bracket, task.neutral, $0.cameraControls) }
            }, photos: task.settings.filesPerDevice)
        task.stage = .ready
        beginWaiting(task, milliseconds: WorkerOrder.photoPatience)
        let answer = task.onPrepared
        task.onPrepared = nil
        // So that cameras that are taken together can be taken on the beat of one of them.
        let beat = controller.stream.flatMap { stream in
            frames.lastFrame.map { PhotoBeat(frame: $0, period: stream.frameTime) }
        }
        answer?(.success(.members(["resolution": resolution.json, "beat": beat?.json])))
    }
}
