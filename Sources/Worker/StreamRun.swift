import BusServer
import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import ZeroMQ

/// A stream from its start to its end, on the loop: takes filled slots from the device, lends them, and gives them back.
final class StreamRun {
    /// Random, as 16 hexadecimal digits: new at each start.
    let id = hexadecimal(randomBytes(8))
    let layout: FrameLayout
    let frameDuration: FrameDuration?
    /// nil when the layout doesn't lie within the slots.
    let payloadPlan: PayloadPlan?

    private let stream: any FrameStream
    private let loop: Loop
    private var token: Loop.Token?
    private var ledger: SlotLedger
    /// The memory of each slot, to be read.
    private let regions: [[UnsafeRawBufferPointer]]
    private var judge: FrameJudge
    private var lastSequence: UInt64?
    private var silence: SilenceWatch?
    private var isOver = false
    private var whenHome: (() -> Void)?

    /// A frame that is whole, or (nil) one that is damaged.
    var onFrame: ((FrameJob?) -> Void)?
    /// Frames that the device itself has lost.
    var onGap: ((UInt64) -> Void)?
    /// The device has no more to give.
    var onLost: ((SourceError) -> Void)?

    /// Frames that are taken before others have their turn again.
    private static let framesPerTurn = 8

    /// Nanoseconds.
    private static let longestFrame: Int64 = 3_600_000_000_000

    private static let brokenPoll = SourceError(
        .disconnected, operation: "poll", errno: ENODEV, message: "the driver reports an error of the device")

    /// - Parameter silenceLimit: nanoseconds that it may go without a frame; 0: for ever.
    init(_ stream: any FrameStream, _ loop: Loop, silenceLimit: Int64) {
        self.stream = stream
        self.loop = loop
        layout = stream.layout
        frameDuration = stream.frameDuration
        judge = FrameJudge(stream.layout.pixelFormat)
        let slots = stream.slots
        ledger = SlotLedger(slots: slots.count)
        regions = slots.map { slot in slot.regions.map { UnsafeRawBufferPointer($0) } }
        payloadPlan = PayloadPlan(layout, regions: slots.first?.regions.map(\.count) ?? [])
        token = loop.watch(.descriptor(stream.descriptor)) { [weak self] in self?.takeFrames() }
        if silenceLimit > 0 {
            let frame = min(stream.frameDuration?.nanoseconds ?? 0, Self.longestFrame)
            let limit = max(silenceLimit, 20 * frame)
            silence = SilenceWatch(loop, limit: limit) { [weak self] in self?.judgeSilence(limit) }
        }
    }

    /// Some drivers tell it with the frames only.
    var timestampSource: TimestampSource { stream.timestampSource }

    /// Lends a frame's slot once more.
    ///
    /// - Returns: false when the device needs it back at once.
    func retain(_ frame: FrameJob) -> Bool { ledger.retain(frame.slot) }

    /// A frame that was lent is not used any more.
    func release(_ frame: FrameJob) { giveBack(frame.slot) }

    /// Takes no more frames, and calls the body as soon as all that were lent have come back.
    func end(then body: @escaping () -> Void) {
        stopWatching()
        isOver = true
        whenHome = body
        tellIfHome()
    }

    private func takeFrames() {
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
                .failed, operation: "stream",
                message: "no frame has come for \(limit / 1_000_000) ms; the device is opened anew"))
    }

    private func take(_ slot: FrameSlot) {
        silence?.heard()
        ledger.dequeued(slot.index)
        if let lastSequence, slot.captureSequence > lastSequence + 1 {
            onGap?(slot.captureSequence - lastSequence - 1)
        }
        lastSequence = slot.captureSequence
        let facts = FrameFacts(
            captureSequence: slot.captureSequence, monotonic: slot.monotonicTime,
            realtime: slot.monotonicTime &+ (MonotonicClock.realtime() &- MonotonicClock.now()))
        onFrame?(
            judge.isWhole(slot, regions[slot.index], payloadPlan)
                ? FrameJob(slot: slot.index, regions: regions[slot.index], bytesUsed: slot.bytesUsed, facts: facts)
                : nil)
        giveBack(slot.index)
    }

    private func giveBack(_ slot: Int) {
        guard ledger.release(slot) else { return }
        if !isOver {
            do {
                try stream.enqueue(stream.slots[slot])
            } catch {
                ledger.lost(slot)
                if ledger.total < 2 {
                    stopWatching()
                    isOver = true
                    onLost?(error)
                }
            }
        }
        tellIfHome()
    }

    private func stopWatching() {
        loop.cancel(token)
        token = nil
        silence?.end()
        silence = nil
    }

    private func tellIfHome() {
        guard let body = whenHome, ledger.isHome else { return }
        whenHome = nil
        body()
    }
}
