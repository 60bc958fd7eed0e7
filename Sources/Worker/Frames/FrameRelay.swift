import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import Delivery
import FrameRing
import Imaging
import JSON
import LinuxIO
import ZeroMQ

/// Passes each frame on: for every wanted rendition it is passed through, converted or left out, and published.
final class FrameRelay {
    let device: String
    private let socket: MediaSocket
    private let pool: RenditionPool
    let lender: PayloadLender
    private let hear: () -> Void
    /// How far the pictures that are made are enlarged.
    private let zoom: DigitalZoomState
    /// Measures frames for the exposure.
    let meter: FrameMeter
    /// The same for photos.
    let photoMeter: FrameMeter
    /// The same for the scene detector.
    let sceneMeter: FrameMeter
    /// Holds frames for photos of a moment that is over.
    let past: PastFrames
    var outputs: [RenditionOutput] = []
    var run: CameraStream?
    /// Its frames have all come, and only those that are lent are still waited for.
    private var isOver = false
    /// The stream whose frames come.
    var running: CameraStream? { isOver ? nil : run }
    /// The frame as it lies in a ring.
    private let lent = Message()
    /// Where there is no memory for a ring: the frame's own bytes, copied at the first rendition that needs them and
    /// shared by all.
    private let native = Message()
    /// The same as a JPEG that any program can read.
    private let completed = Message()
    /// What the headers of this stream say.
    var timestampSource = TimestampSource.startOfExposure
    /// How far the counts of topics had come that have gone within this stream: they go on if the topic comes back.
    var departed: [SubscribedTopic: UInt64] = [:]
    /// Rings of this stream that have no subscriber now but still count for a user. A new subscriber to the rendition
    /// gets the same ring.
    var retired: [Rendition: RenditionRing] = [:]

    /// That of the last committed configuration.
    var generation: UInt64 = 0 { didSet { run?.generation = generation } }
    /// Since the start of the process: whole frames that the device gave, and those that some rendition had to leave
    /// out or that were damaged.
    private(set) var frames: UInt64 = 0
    private(set) var dropped: UInt64 = 0
    /// Of those, the ones that came damaged or short.
    private(set) var damaged: UInt64 = 0
    /// Damaged frames in a row, until the newest frame.
    private var damageRun = DamageRun()
    /// Why none of the device's frames can be used; nil: some can, or none comes.
    var damage: BusError? {
        damageRun.why.map { .damagedFrames("The frames of \(device) are damaged: \($0)") }
    }
    /// ``damage`` has changed.
    var onDamageChange: (() -> Void)?
    /// CLOCK_MONOTONIC of the last whole frame.
    private(set) var lastFrame: Int64?
    /// Whether a ring counts for a user.
    var isCounted: (_ ring: String) -> Bool = { _ in false }
    /// There is a ring, or (nil) none any more.
    var onRing: ((Rendition, RingWriter?) -> Void)?
    /// Called with each whole frame while photos are taken; nil: none are.
    var onPhotoFrame: ((FrameJob, CameraStream) -> Void)?
    /// The socket can't be used any more.
    var onFailure: ((ZeroMQError) -> Void)?

    static let maximumDeparted = 4096

    init(
        device: String, _ socket: MediaSocket, _ pool: RenditionPool, _ lender: PayloadLender, _ zoom: DigitalZoomState
    ) {
        self.device = device
        self.socket = socket
        self.pool = pool
        self.lender = lender
        self.zoom = zoom
        meter = FrameMeter(pool)
        photoMeter = FrameMeter(pool)
        sceneMeter = FrameMeter(pool)
        past = PastFrames(pool)
        hear = { [socket] in socket.hear() }
        pool.onFinished = { [weak self] work in self?.finished(work) }
    }

    /// What is to be made from now on.
    func setWanted(_ wanted: [SubscriptionTable.Wanted]) {
        for output in outputs where !wanted.contains(where: { $0.rendition == output.rendition }) { remove(output) }
        outputs = wanted.map { wanted in
            let known = outputs.first { $0.rendition == wanted.rendition }
            let output = known ?? RenditionOutput(wanted.rendition)
            if known == nil, let running { output.begin(running) }
            update(output, wanted.topics)
            if wanted.needsRing, !output.wantsRing { running?.requestKeyframe() }
            output.wantsRing = wanted.needsRing
            output.isRecorded = wanted.isRecorded
            if let running { makeRing(output, running) }
            return output
        }
    }

    /// A rendition has a further subscriber, who needs a key frame if frames build on one another.
    func requestKeyframe() { running?.requestKeyframe() }

    /// Tries again what failed for lack of memory, and cuts off stalled subscribers that hold memory.
    func retry() {
        socket.relieve(lender.memory, at: MonotonicClock.now())
        releaseRetired()
        guard let running else { return }
        for output in outputs where output.ringError != nil { makeRing(output, running) }
    }

    /// A stream has started.
    func begin(_ run: CameraStream) {
        self.run = run
        run.generation = generation
        isOver = false
        damageRun = DamageRun()
        departed = [:]
        timestampSource = run.timestampSource
        for output in outputs {
            output.begin(run)
            for topic in output.outputs {
                topic.sequence = 0
                topic.hasBegun = false
                output.prepare(topic, device: device, run)
            }
            makeRing(output, run)
        }
    }

    /// No frames will come any more; those that are lent are given back as soon as possible.
    func end() {
        for output in outputs {
            withdraw(output)
            endRing(output)
            output.end()
        }
        for ring in retired.values { ring.writer.close(.ended) }
        retired = [:]
        meter.end(run)
        photoMeter.end(run)
        sceneMeter.end(run)
        past.end(run)
        if let running { lender.end(running.ring.writer) }
        isOver = true
        damageRun = DamageRun()
        native.removeAll()
    }

    /// All frames of the stream have come back.
    func forget() {
        run = nil
        departed = [:]
    }

    /// A frame has come.
    func deliver(_ content: FramePublisher.Content) {
        switch content {
        case .whole(let arrival):
            if damageRun.countWhole() { onDamageChange?() }
            deliver(arrival)
        case .changed: leftOut()
        case .damaged(let why):
            leftOut()
            damaged += 1
            if let why, damageRun.countDamaged(why, at: MonotonicClock.now()) { onDamageChange?() }
        }
    }

    private func leftOut() {
        dropped += 1
        for output in outputs { output.dropped += 1 }
    }

    private func deliver(_ arrival: FramePublisher.Arrival) {
        let frame = arrival.frame
        let now = MonotonicClock.now()
        if let run, run.timestampSource != timestampSource { prepareHeaders(run) }
        socket.frame(at: now)
        run?.beforeFrames = socket.isListening ? nil : hear
        socket.relieve(lender.memory, at: now)
        frames += 1
        lastFrame = frame.facts.monotonic
        // The other threads begin before this one is busy with copying. All that is made of a frame shows the same part
        // of it.
        let zoom = zoom.thousandths
        for output in outputs {
            if case .converted(let work) = output.making, output.wants(frame.facts) {
                offer(frame, output, work, zoom)
            }
        }
        var hasNative = false
        // A subscriber of many topics may lose the last ones of a burst, so that each has its turn to be the first.
        for offset in outputs.indices {
            let output = outputs[(offset + Int(truncatingIfNeeded: frames & 0xFFFF)) % outputs.count]
            guard case .passThrough = output.making, output.wants(frame.facts) else { continue }
            let publication = output.ring.flatMap { $0.isNative ? arrival.publication : put(frame, output, $0) }
            if let publication {
                hand(output, publication, frame.facts)
                continue
            }
            hasNative = hasNative || output.wantsPayload && makeNative(frame)
            guard output.wantsPayload, hasNative else {
                drop(output)
                continue
            }
            publish(output, output.rendition.encoding == .jpeg ? completeJPEG() : native, frame.facts)
        }
        native.removeAll()
        completed.removeAll()
        meter.take(frame, of: running)
        sceneMeter.take(frame, of: running)
        hold(frame, zoom)
        takePhotos(frame, zoom)
        if frame.facts.isKeyframe == false, outputs.contains(where: \.isWaiting) { run?.requestKeyframe() }
    }

    /// Holds frames for so many milliseconds from now on; 0: none.
    func setPreRoll(_ milliseconds: Int) { past.setPreRoll(milliseconds, run: running) }

    private func hold(_ frame: FrameJob, _ zoom: Int) {
        guard past.preRoll > 0, let run = running else { return }
        var frame = frame
        frame.facts.zoom = zoom
        past.take(frame, of: run)
    }

    // The photo pipeline may keep the frame until it releases it.
    private func takePhotos(_ frame: FrameJob, _ zoom: Int) {
        guard let onPhotoFrame, let run = running else { return }
        photoMeter.take(frame, of: run)
        var frame = frame
        frame.facts.zoom = zoom
        onPhotoFrame(frame, run)
    }

    /// Bytes of frames that slow subscribers hold, in addition to those in rings.
    var heldBytes: Int { lender.held }

    /// The subscribers of renditions that get no frames, and why.
    ///
    /// - Parameter error: why the device gives none at all, if it doesn't.
    func failures(_ error: BusError?) -> [(topic: SubscribedTopic, error: BusError)] {
        var failures: [(topic: SubscribedTopic, error: BusError)] = []
        for output in outputs {
            let reason = failure(output) ?? error ?? damage
            for topic in output.outputs {
                let isWithoutRing = topic.subscribed.kind == .buffer && output.ring == nil
                guard let reason = reason ?? (isWithoutRing ? output.ringError : nil) else { continue }
                failures.append((topic.subscribed, reason))
            }
        }
        return failures
    }

    private func failure(_ output: RenditionOutput) -> BusError? {
        switch output.making {
        case .impossible(let why): why
        case .converted:
            output.failure.map { .damagedFrames("The device's frames can't be converted: \($0)") }
        case .idle, .passThrough: nil
        }
    }

    /// The renditions whose ring readers get no frames, each with its error.
    ///
    /// - Parameter error: why the device gives no frames at all, if it doesn't.
    func ringFailures(_ error: BusError?) -> [(rendition: Rendition, error: BusError)] {
        outputs.filter(\.wantsRing).compactMap { output in
            let reason = failure(output) ?? error ?? damage ?? (output.ring == nil ? output.ringError : nil)
            return reason.map { (output.rendition, $0) }
        }
    }

    /// Frames that were published and left out within the stream, by rendition.
    var counters: [(rendition: Rendition, published: UInt64, dropped: UInt64)] {
        outputs.map { ($0.rendition, $0.published, $0.dropped) }
    }

    // MARK: Topics

    private func update(_ output: RenditionOutput, _ topics: [SubscribedTopic]) {
        let wanted = Set(topics)
        for gone in output.outputs where !wanted.contains(gone.subscribed) { depart(gone) }
        output.outputs.removeAll { !wanted.contains($0.subscribed) }
        let present = Set(output.outputs.map(\.subscribed))
        for topic in topics where !present.contains(topic) {
            let new = RenditionOutput.Output(topic, sequence: departed.removeValue(forKey: topic) ?? 0)
            output.outputs.append(new)
            if let running { output.prepare(new, device: device, running) }
        }
    }

    private func remove(_ output: RenditionOutput) {
        withdraw(output)
        endRing(output, isOver: false)
        for gone in output.outputs { depart(gone) }
    }

    private func depart(_ gone: RenditionOutput.Output) {
        guard run != nil, gone.sequence > 0, departed.count < Self.maximumDeparted else { return }
        departed[gone.subscribed] = gone.sequence
    }

    // MARK: Publications

    // The frame is in its ring: its place is published to `buffer` subscribers, and its bytes are lent to libzmq for
    // the others.
    private func hand(_ output: RenditionOutput, _ publication: RenditionRing.Publication, _ facts: FrameFacts) {
        refer(output, publication, facts)
        guard output.wantsPayload, let ring = output.ring else {
            output.published += 1
            return
        }
        if lender.fill(lent, from: ring, publication) {
            publish(output, lent, facts)
        } else {
            drop(output, for: .frame)
        }
        lent.removeAll()
    }

    // After the picture is in the ring: a reader of the header must find it.
    private func refer(_ output: RenditionOutput, _ publication: RenditionRing.Publication, _ facts: FrameFacts) {
        for topic in output.outputs where topic.subscribed.kind == .buffer && topic.admits(facts) {
            topic.writer?.write(
                sequence: topic.sequence, captureSequence: facts.captureSequence, generation: facts.generation,
                monotonic: facts.monotonic, realtime: facts.realtime, dropped: output.dropped,
                keyframe: facts.isKeyframe, presentationDelay: facts.presentationDelay, zoom: facts.zoom,
                payloadBytes: publication.bytes, place: publication.place)
            guard let writer = topic.writer else { continue }
            topic.sequence += 1
            attempt { () throws(ZeroMQError) in
                try socket.publish(topic: topic.subscribed.topic, header: writer)
            }
        }
    }

    private func prepareHeaders(_ run: CameraStream) {
        timestampSource = run.timestampSource
        for output in outputs {
            for topic in output.outputs { output.prepare(topic, device: device, run) }
        }
    }

    // MARK: Frames

    private func makeNative(_ frame: FrameJob) -> Bool {
        guard let plan = run?.payloadPlan, let count = plan.count(bytesUsed: frame.bytesUsed) else { return false }
        return lender.memory.fill(native, count: count) { room in
            plan.copy(frame.regions, bytesUsed: frame.bytesUsed, into: room)
        }
    }

    /// Of the device's own pictures.
    var orientation: PictureOrientation { run?.layout.description.orientation ?? .upright }

    // Motion JPEG may leave its Huffman tables out, and doesn't say how it has to be turned. Without memory for that,
    // the picture is published unchanged.
    private func completeJPEG() -> Message {
        if completed.count > 0 { return completed }
        return native.withUnsafeBytes { picture in
            guard let completion = JPEGStream.completion(of: picture, orientation: orientation) else { return native }
            let isFilled = lender.memory.fill(completed, count: picture.count + completion.bytes) {
                completion.fill(picture, into: $0)
            }
            return isFilled ? completed : native
        }
    }

    // The mailbox holds the newest frame only: a frame that was not started in time is dropped.
    private func offer(_ frame: FrameJob, _ output: RenditionOutput, _ work: RenditionWork, _ zoom: Int) {
        guard let run else { return }
        var frame = frame
        frame.facts.zoom = zoom
        if let old = work.replace(nil) {
            run.release(old)
            drop(output)
        }
        guard run.retain(frame) else { return drop(output) }
        _ = work.replace(frame)
        if !work.isScheduled { pool.schedule(work) }
    }

    private func finished(_ work: RenditionWork) {
        if work.job != nil, case .failed(.damaged) = work.outcome { run?.doubt() }
        if meter.finished(work, of: run) || photoMeter.finished(work, of: run) { return }
        if sceneMeter.finished(work, of: run) || past.finished(work, of: run) { return }
        let output = outputs.first { $0.work === work }
        let job = work.job
        if let job, let output {
            switch work.outcome {
            case .made:
                output.wasConverted()
                publish(output, work.picture, job.facts)
            case .failed(let why):
                output.wasNotConverted("\(why)", at: job.facts.monotonic)
                drop(output)
            }
        }
        work.finish()
        if work.isWaiting { pool.schedule(work) }
        if let job { run?.release(job) }
    }

    private func publish(_ output: RenditionOutput, _ picture: UnsafeRawBufferPointer, _ facts: FrameFacts) {
        let publication = output.ring?.publish(
            facts, dropped: output.dropped, timestampSource, bytes: picture.count
        ) { $0.copyMemory(from: picture) }
        if let publication { return hand(output, publication, facts) }
        let isFilled =
            output.wantsPayload && lender.memory.fill(lent, count: picture.count) { $0.copyMemory(from: picture) }
        if isFilled { publish(output, lent, facts) } else { drop(output) }
        lent.removeAll()
    }

    private func withdraw(_ output: RenditionOutput) {
        guard let old = output.work?.replace(nil) else { return }
        run?.release(old)
    }

    // A subscriber that received it needs no key frame.
    private func drop(_ output: RenditionOutput, for kind: MediaTopic.Kind? = nil) {
        for topic in output.outputs where kind == nil || topic.subscribed.kind == kind { topic.hasBegun = false }
        output.dropped += 1
        dropped += 1
    }

    private func publish(_ output: RenditionOutput, _ payload: Message, _ facts: FrameFacts) {
        output.published += 1
        for topic in output.outputs where topic.subscribed.kind == .frame && topic.admits(facts) {
            topic.writer?.write(
                sequence: topic.sequence, captureSequence: facts.captureSequence, generation: facts.generation,
                monotonic: facts.monotonic, realtime: facts.realtime, dropped: output.dropped,
                keyframe: facts.isKeyframe, presentationDelay: facts.presentationDelay, zoom: facts.zoom,
                payloadBytes: payload.count)
            guard let writer = topic.writer else { continue }
            topic.sequence += 1
            attempt { () throws(ZeroMQError) in
                try socket.publish(topic: topic.subscribed.topic, header: writer, payload: payload)
            }
        }
    }

    private func attempt(_ send: () throws(ZeroMQError) -> Void) {
        do throws(ZeroMQError) { try send() } catch { onFailure?(error) }
    }
}

extension BusError {
    /// Nothing can be made of what the device delivers. Other failures of the device pass by themselves.
    fileprivate static func damagedFrames(_ message: String) -> BusError {
        BusError(.internalError, message, ["damaged": true])
    }
}
