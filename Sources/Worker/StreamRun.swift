import BusServer
import CaptureCore
import CaptureSources
import FrameRing
import Glibc
import LinuxIO
import ZeroMQ

/// A stream from its start to its end, on the loop: takes filled slots from the device, and gives it others to fill, so that it
/// never runs dry.
final class StreamRun {
    /// Random, as 16 hexadecimal digits: new at each start.
    var id: String { ring.stream }
    let layout: FrameLayout
    let frameDuration: FrameDuration?
    /// The slots.
    let ring: NativeRing
    var payloadPlan: PayloadPlan { ring.plan }
    // Unchecked access: see `PollSet`.
    /// Frames that came damaged or short.
    @exclusivity(unchecked) private(set) var damaged: UInt64 = 0
    /// That of the last committed configuration, for what is published.
    @exclusivity(unchecked) var generation: UInt64 = 0

    private let stream: any FrameStream
    private let loop: Loop
    private var token: Loop.Token?
    /// Slots that the device did not take.
    private var refused = 0
    /// Frames that are lent.
    private var lent = 0
    /// The memory of each slot, to be read.
    private let regions: [[UnsafeRawBufferPointer]]
    @exclusivity(unchecked) private var judge: FrameJudge
    /// Where frames build on one another.
    @exclusivity(unchecked) private var chain: H264Chain?
    @exclusivity(unchecked) private var lastSequence: UInt64?
    @exclusivity(unchecked) private var realtime = RealtimeOffset()
    @exclusivity(unchecked) private var silence: SilenceWatch?
    @exclusivity(unchecked) private var isOver = false
    private var whenHome: (() -> Void)?

    /// Told before frames are taken; it may end the stream. Readers of the ring wait for what it does.
    @exclusivity(unchecked) var beforeFrames: (() -> Void)?
    /// A frame that is whole, or (nil) one that is damaged.
    @exclusivity(unchecked) var onFrame: ((Arrival?) -> Void)?
    /// Frames that the device itself has lost.
    @exclusivity(unchecked) var onGap: ((UInt64) -> Void)?
    /// The device is to be asked for a key frame.
    var onKeyframeWanted: (() -> Void)?
    /// The device has no more to give.
    var onLost: ((SourceError) -> Void)?

    /// A whole frame, and where it is in the ring; that is nil if it could not be published there.
    struct Arrival {
        var frame: FrameJob
        var publication: RenditionRing.Publication?
    }

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
        layout = stream.layout
        frameDuration = stream.frameDuration
        judge = FrameJudge(stream.layout.pixelFormat)
        chain = stream.layout.pixelFormat == .h264 ? H264Chain() : nil
        regions = stream.slots.map { slot in slot.regions.map { UnsafeRawBufferPointer($0) } }
        // Neither is called any more when this is gone. Weak references would make each use of this, at each frame, a longer way.
        token = loop.watch(.descriptor(stream.descriptor)) { [unowned self] in takeFrames() }
        if silenceLimit > 0 {
            let frame = min(stream.frameDuration?.nanoseconds ?? 0, Self.longestFrame)
            let limit = max(silenceLimit, 20 * frame)
            silence = SilenceWatch(loop, limit: limit) { [unowned self] in judgeSilence(limit) }
        }
    }

    deinit { stopWatching() }

    /// Some drivers tell it with the frames only.
    var timestampSource: TimestampSource { stream.timestampSource }

    /// How frames come into the slots.
    var memory: FrameMemory { stream.memory }

    /// Lends a published frame, for work of this process.
    ///
    /// - Returns: false when the device needs its slot, and when the stream is over.
    func retain(_ frame: FrameJob) -> Bool {
        // A stream that is over may be waited for by nobody any more.
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

    /// Frames build on one another: a reader can begin at a key frame only.
    var isChained: Bool { chain != nil }

    /// Somebody can't go on before the next key frame.
    func requestKeyframe() {
        if !isOver, chain?.mayRequest(at: MonotonicClock.now()) == true { onKeyframeWanted?() }
    }

    /// Takes no more frames, and calls the body as soon as all that were lent have come back. The device may still fill slots:
    /// the ring is to be closed when it has stopped.
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
            // An error stays readable: nobody must be woken by it again and again.
            stopWatching()
            isOver = true
            onLost?(error)
        }
    }

    private func judgeSilence(_ limit: Int64) {
        // This process may have been stopped: then the frames are there, and nobody has looked.
        takeFrames()
        guard !isOver, silence?.isSilent == true else { return }
        stopWatching()
        isOver = true
        onLost?(
            SourceError(
                .silent, operation: "stream",
                message: "no frame has come for \(limit / 1_000_000) ms; the device is opened anew"))
    }

    private func take(_ slot: FrameSlot) {
        // Readers wait for what is done from here to where the frame is published, with code and memory that have gone cold since the last
        // one: what can be done afterwards is.
        var told = slot.told
        if let lastSequence, told.captureSequence > lastSequence + 1 {
            chain?.lose()
            onGap?(told.captureSequence - lastSequence - 1)
        }
        lastSequence = told.captureSequence
        var facts = FrameFacts(
            captureSequence: told.captureSequence, monotonic: told.monotonicTime,
            realtime: realtime.at(told.monotonicTime))
        var isWhole = judge.isWhole(told, regions[slot.index], payloadPlan)
        if chain != nil {
            switch isWhole ? chain?.take(slot) : nil {
            case .picture(let isKeyframe):
                facts.isKeyframe = isKeyframe
                told = slot.told
            case .parameterSets:
                silence?.heard(at: MonotonicClock.now())
                ring.writer.putBack(slot.index)
                return fill()
            case .unusable, nil:
                isWhole = false
                chain?.lose()
                requestKeyframe()
            }
        }
        if isWhole {
            let frame = FrameJob(
                slot: slot.index, regions: regions[slot.index], bytesUsed: told.bytesUsed, facts: facts)
            // Before all else: whoever waits for it in the ring is woken, and only then may it be lent.
            let publication = ring.publish(
                frame, generation: generation, dropped: damaged, stream.timestampSource)
            onFrame?(Arrival(frame: frame, publication: publication))
        } else {
            damaged += 1
            onFrame?(nil)
        }
        silence?.heard(at: realtime.measure())
        // One that was not published may be filled again at once.
        ring.writer.putBack(slot.index)
        fill()
    }

    // Gives the device as many slots as it may have.
    private func fill() {
        guard !isOver else { return }
        while let slot = ring.take() {
            do {
                try stream.enqueue(stream.slots[slot])
            } catch {
                // It stays with the device, as readers are told, and the stream goes on without it.
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
