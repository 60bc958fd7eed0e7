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

// Which frames are kept for photos.

extension PhotoPipeline {
    /// Has a frame copied, and calls the body with it on the loop; nil: there was no memory.
    ///
    /// - Returns: false: the frame can't be had; the next one may.
    func keep(
        _ frame: FrameJob, _ run: CameraStream, _ task: PhotoTask, _ start: Instant, measures: Bool = false,
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

    func keepShot(_ frame: FrameJob, _ run: CameraStream, _ task: PhotoTask, _ start: Instant) {
        let index = task.taken.count
        let isKept = keep(frame, run, task, start) { [weak self] kept, _ in
            guard let self, isPresent(task) else { return }
            guard let kept else { return fail(task, .noMemoryForPhotos(device)) }
            task.taken[index].frame = kept
            task.taken[index].isKept = true
            gotFrame(task)
        }
        guard isKept else { return }
        add(task, frame.facts, exposedFrom: start)
    }

    /// A frame is the next photo.
    func add(
        _ task: PhotoTask, _ facts: FrameFacts, exposedFrom start: Instant, _ frame: KeptFrame? = nil,
        flashFired: Bool? = nil
    ) {
        let index = task.shots?.take(exposedFrom: start) ?? 0
        task.taken.append(
            PhotoTask.Shot(
                moment: facts.monotonic, frame: frame, isKept: frame != nil, bias: task.bias, flashFired: flashFired,
                // A bracket takes as long as its exposures take to come.
                isSettled: task.isSettled, late: task.settings.bracket == nil ? task.shots?.late : nil))
        let isLast = task.shots?.isOver ?? true
        // No more frames until it is set for the next.
        task.isHeld = isLast || task.settings.bracket != nil
        soon(task) { [weak self] in self?.added(task, index, isLast: isLast) }
    }

    func added(_ task: PhotoTask, _ index: Int, isLast: Bool) {
        beginWaiting(task, beside: task.settings.interval / 1_000_000)
        if !isLast, let bracket = task.settings.bracket {
            setStep(index + 1, bracket, task) { [weak self] before in
                self?.describe(task, before, only: index)
            }
        }
        // The last one of what was set is looked at when it is put back.
        if index == 0, task.settings.bracket == nil, !isLast || !task.isSet { look(task) }
        gotFrame(task)
    }

    // The camera does not always report what it does by itself.
    func look(_ task: PhotoTask) {
        guard !task.isLookedAt else { return }
        task.isLookedAt = true
        orders.work(.open) { camera throws(BusError) in
            try camera.look()
        } then: { [weak self] result in
            guard let self, task.stage != .over else { return }
            describe(task, (try? result.get()) ?? controller.snapshot)
        }
    }

    /// How the device was when frames were taken.
    ///
    /// - Parameter index: of which; nil: of all that nothing is known of.
    func describe(_ task: PhotoTask, _ snapshot: DeviceSnapshot?, only index: Int? = nil) {
        let reader = PhotoFactsReader(snapshot)
        if let index { task.taken[index].reader = reader } else if task.reader == nil { task.reader = reader }
        process(task)
    }

    func gotFrame(_ task: PhotoTask) {
        process(task)
        guard task.stage == .taking, task.isWhole else { return }
        task.stage = .processing
        loop.cancel(task.timer)
        tell(task, .didCapture, .members(["moment": task.taken.first.map { JSONValue.integer($0.moment) }]))
        guard task.stage == .processing else { return }
        // Its frame may have been copied before that came up. What was set is looked at when it is put back.
        if !task.isSet, task.settings.bracket == nil { look(task) }
        if current === task { leave(task) }
        finishIfWhole(task)
    }

    func tell(_ task: PhotoTask, _ progress: PhotoProgress, _ members: JSONValue = [:], _ file: Message? = nil) {
        guard onProgress?(task.order.job, progress, members, file) == false else { return }
        fail(
            task,
            BusError(
                .limitExceeded, "The coordinator accepts no more photos now; try again later.",
                ["device": .string(device), "limit": "photoReports"]))
    }

    // MARK: The flash

    func fire(_ task: PhotoTask) {
        orders.work(.open) { camera throws(BusError) in
            try camera.fireFlash()
        } then: { [weak self] result in
            guard let self, isPresent(task) else { return }
            switch result {
            case .failure(let error): fail(task, error)
            case .success(let time): task.flash?.fired = time
            }
        }
    }

    // Which frame has the light isn't told by its time: the flash may have come while the driver was still in its call.
    func keepCandidate(_ frame: FrameJob, _ run: CameraStream, _ task: PhotoTask, _ start: Instant) {
        guard task.flash?.after ?? Self.flashFrames < Self.flashFrames else { return }
        makeRoom(for: frame, run, task)
        let isKept = keep(frame, run, task, start, measures: true) { [weak self] kept, luma in
            guard let self, isPresent(task), task.flash != nil else { return }
            guard let kept else { return fail(task, .noMemoryForPhotos(device)) }
            task.flash?.add(kept, luma: luma)
            chooseLit(task)
        }
        if isKept {
            task.flash?.pending += 1
            task.flash?.lastKept = start
        }
        // One that there is no room for counts as well, as soon as there is one that may be the lit one.
        guard let fired = task.flash?.fired, start >= fired, task.flash?.lastKept ?? .min >= fired else { return }
        task.flash?.after += 1
        if !isKept { soon(task) { [weak self] in self?.chooseLit(task) } }
    }

    // A driver that takes long has had frames come meanwhile.
    private func makeRoom(for frame: FrameJob, _ run: CameraStream, _ task: PhotoTask) {
        guard let count = run.payloadPlan.count(bytesUsed: frame.bytesUsed) else { return }
        while task.flash?.candidates.count ?? 0 >= Self.maximumCandidates
            || !memory.hasRoom(for: count, beside: copying)
        {
            guard task.flash?.dropDimmest() == true else { return }
        }
    }

    func chooseLit(_ task: PhotoTask) {
        guard let flash = task.flash, let fired = flash.fired, flash.after >= Self.flashFrames, flash.pending == 0
        else {
            return
        }
        // There was no room after all: the next frames are as good as any.
        guard !flash.candidates.isEmpty else {
            task.flash?.after = 0
            return
        }
        task.flash = nil
        let brightest = flash.candidates.max { $0.luma ?? 0 < $1.luma ?? 0 }
        var lit = flash.candidates.first { $0.frame.start >= fired } ?? flash.candidates.last
        if let brightest, let luma = brightest.luma, let least = flash.least, luma > least * 1.15 + 2 {
            lit = brightest
        }
        guard let lit else { return }
        add(task, lit.frame.facts, exposedFrom: lit.frame.start, lit.frame, flashFired: true)
    }
}
