import BusServer
import CaptureCore
import CaptureSources
import FrameRing
import Glibc
import LinuxIO
import ZeroMQ

/// One run of a camera from start to stop, on the loop: takes filled slots from the device and gives it others to fill,
/// so that it never runs out of slots.
final class CameraStream {
    /// Random, as 16 hexadecimal digits: new at each start.
    var id: String { ring.stream }
    let layout: FrameLayout
    let frameDuration: FrameDuration?
    /// The slots.
    let ring: NativeRing
    var payloadPlan: PayloadPlan { ring.plan }
    /// That of the last committed configuration, for what is published.
    var generation: UInt64 {
        get { ring.publisher.generation }
        set { ring.publisher.generation = newValue }
    }

    private let stream: any FrameStream
    private let loop: Loop
    private var token: Loop.Token?
    /// Slots that the device did not take.
    private var refused = 0
    /// Frames that are lent.
    private var lent = 0
    // Unchecked access: see `PollSet`.
    /// Where frames build on one another.
    @exclusivity(unchecked) private var chain: H264Chain?
    @exclusivity(unchecked) private var lastSequence: UInt64?
    @exclusivity(unchecked) private var silence: SilenceDetector?
    @exclusivity(unchecked) private var isOver = false {
        didSet { ring.publisher.end() }
    }
    private var whenHome: (() -> Void)?

    /// Called before frames are taken; it may end the stream.
    @exclusivity(unchecked) var beforeFrames: (() -> Void)?
    /// A frame that is whole, or one that is damaged.
    @exclusivity(unchecked) var onFrame: ((FramePublisher.Content) -> Void)?
    /// Frames that the device itself has lost.
    @exclusivity(unchecked) var onGap: ((UInt64) -> Void)?
    /// The device is to be asked for a key frame.
    var onKeyframeWanted: (() -> Void)?
    /// The pictures have this from now on, whatever the device says. The stream is over.
    var onChanged: ((ActualPictures) -> Void)?
    /// The device has no more to give.
    var onLost: ((SourceError) -> Void)?

    /// Frames that are taken before others have their turn again.
    private static let framesPerTurn = 8

    /// Nanoseconds.
    private static let longestFrame: Int64 = 3_600_000_000_000

    private static let brokenPoll = SourceError(
        .disconnected, operation: "poll", errno: ENODEV, message: "the driver reports an error of the device")

    /// - Parameter silenceLimit: nanoseconds that it may go without a frame; 0: for ever.
    init(_ stream: any FrameStream, _ ring: NativeRing, _ loop: Loop, silenceLimit: Int64) {
        self.stream = stream
        self.ring = ring
        self.loop = loop
        layout = ring.layout
        frameDuration = stream.frameDuration
        chain = ring.publisher.isChained ? H264Chain() : nil
        // Neither is called any more when this is gone. Weak references would make each use of this, at each frame, a
        // longer way.
        token = loop.watch(.descriptor(stream.descriptor)) { [unowned self] in takeFrames() }
        if silenceLimit > 0 {
            let frame = min(stream.frameDuration?.nanoseconds ?? 0, Self.longestFrame)
            let limit = max(silenceLimit, 20 * frame)
            silence = SilenceDetector(loop, limit: limit) { [unowned self] in judgeSilence(limit) }
        }
    }

    deinit { stopWatching() }

    /// Some drivers report it only with the frames.
    var timestampSource: TimestampSource { stream.timestampSource }

    /// How frames come into the slots.
    var memory: FrameMemory { stream.memory }

    /// Lends a published frame, for work of this process.
    ///
    /// - Returns: false when the device needs its slot, and when the stream is over.
    func retain(_ frame: FrameJob) -> Bool {
        // No caller may wait any more for a stream that has ended.
        guard !isOver, ring.writer.hold(frame.slot) else { return false }
        lent += 1
        return true
    }

    /// A frame that was lent is not used any more.
    func release(_ frame: FrameJob) {
        ring.writer.letGo(frame.slot)
        lent -= 1
        fill()
        tellIfHome()
    }

    /// A picture has turned out to be damaged: those to come are looked at closely.
    func doubt() { ring.publisher.doubt() }

    /// Frames build on one another: a reader can begin at a key frame only.
    var isChained: Bool { chain != nil }

    /// A subscriber needs a key frame.
    func requestKeyframe() {
        if !isOver, chain?.mayRequest(at: MonotonicClock.now()) == true { onKeyframeWanted?() }
    }

    /// Takes no more frames, and calls the body as soon as all that were lent have come back. The device may still fill
    /// slots: the ring is to be closed when it has stopped.
    func end(then body: @escaping () -> Void) {
        stopWatching()
        isOver = true
        whenHome = body
        tellIfHome()
    }

    private func takeFrames() {
        if let beforeFrames { beforeFrames() }
        do throws(SourceError) {
            for count in 0..<Self.framesPerTurn {
                guard !isOver else { return }
                guard let slot = try stream.dequeue() else {
                    // Woken for nothing: some drivers show the end of a device in the poll only.
                    if count == 0, Descriptor.isBroken(stream.descriptor) { throw Self.brokenPoll }
                    return
                }
                take(slot)
            }
        } catch {
            // An error stays readable: it must not wake the loop again and again.
            stopWatching()
            isOver = true
            onLost?(error)
        }
    }

    private func judgeSilence(_ limit: Int64) {
        // This process may have been stopped: then frames have arrived and were not read.
        takeFrames()
        guard !isOver, silence?.isSilent == true else { return }
        stopWatching()
        isOver = true
        onLost?(
            SourceError(
                .silent, operation: "stream",
                message: "no frame arrived for \(limit / 1_000_000) ms; the device is opened again"))
    }

    private func take(_ slot: FrameSlot) {
        ring.taken()
        let metadata = slot.metadata
        // First of all, if not done yet: readers that wait for the frame in the ring are woken, and only then may it be
        // lent.
        var content = chain == nil ? ring.publisher.content(of: slot.index, metadata, stream.timestampSource) : nil
        if let lastSequence, metadata.captureSequence > lastSequence + 1 {
            chain?.lose()
            onGap?(metadata.captureSequence - lastSequence - 1)
        }
        lastSequence = metadata.captureSequence
        if chain != nil { content = publishChained(slot) }
        var isPublished = false
        if let content {
            if case .whole(let arrival) = content { isPublished = arrival.publication != nil }
            onFrame?(content)
        }
        silence?.heard(at: MonotonicClock.now())
        // One that was not published may be filled again at once.
        if !isPublished { ring.writer.putBack(slot.index) }
        if case .changed(let pictures) = content {
            stopWatching()
            isOver = true
            onChanged?(pictures)
        }
        fill()
    }

    /// Publishes the next frame of those that build on one another.
    ///
    /// - Returns: nil if it is none, but something that frames need.
    private func publishChained(_ slot: FrameSlot) -> FramePublisher.Content? {
        let publisher = ring.publisher
        let damage = publisher.damage(slot.metadata)
        if damage == nil {
            switch chain?.take(slot) {
            case .picture(let isKeyframe):
                if isKeyframe, let other = chain?.otherPictures(than: layout, stream.layout) {
                    return publisher.leaveOut(other)
                }
                // The slot's properties may have changed.
                return publisher.publish(slot.index, slot.metadata, stream.timestampSource, isKeyframe: isKeyframe)
            case .parameterSets: return nil
            case .unusable, nil: break
            }
        }
        chain?.lose()
        requestKeyframe()
        return publisher.leaveOut(damage)
    }

    // Gives the device as many slots as it may have.
    private func fill() {
        guard !isOver else { return }
        while let slot = ring.take() {
            do {
                try stream.enqueue(stream.slots[slot])
            } catch {
                // It stays with the device, readers see that, and the stream continues without it.
                refused += 1
                guard refused > NativeRing.queued - 2 else { continue }
                stopWatching()
                isOver = true
                onLost?(error)
                return
            }
        }
    }

    private func stopWatching() {
        loop.cancel(token)
        token = nil
        silence?.end()
        silence = nil
    }

    private func tellIfHome() {
        guard let body = whenHome, lent == 0 else { return }
        whenHome = nil
        body()
    }
}
