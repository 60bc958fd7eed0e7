import BusProtocol
import CaptureCore
import CaptureSources
import FrameRing
import LinuxIO
import Synchronization

/// Publishes the device's frames in their ring: on the thread that fills the slots, where a device has one, else on the
/// loop. So those who read the ring are woken by whoever knows first that there is a frame.
///
/// One thread of the two publishes all of a stream; what it makes of a frame goes to the loop with the frame's slot.
final class FramePublisher: @unchecked Sendable {
    /// A whole frame, and where it is in the ring; that is nil if it could not be published there.
    struct Arrival {
        var frame: FrameJob
        var publication: RenditionRing.Publication?
    }

    /// What a slot holds that was filled.
    enum Content {
        case whole(Arrival)
        /// Whole, but of another size, turned otherwise, or with other colours, than all that is said of the stream. It
        /// is not published.
        case changed(ActualPictures)
        /// Damaged or short, and why: it is not published. nil: it builds on one that is missing.
        case damaged(String?)
    }

    let writer: RingWriter
    /// How the bytes of a frame become a payload, here and in messages.
    let plan: PayloadPlan
    /// Frames build on one another, so that the loop decides which of them are published.
    let isChained: Bool
    /// The memory of each slot, to be read.
    private let regions: [[UnsafeRawBufferPointer]]
    private let places: [Place]
    private let newestGeneration: Atomic<UInt64>
    private let isOver = Atomic(false)
    private let isDoubted = Atomic(false)
    /// Of JPEG pictures; nil: the frames are others. Only the thread that publishes uses it.
    private let judge: JPEGDamageDetector?

    // Only the thread that publishes uses these. Unchecked access: see `PollSet`.
    @exclusivity(unchecked) private var sequence: UInt64 = 0
    @exclusivity(unchecked) private var damaged: UInt64 = 0

    /// The result for the frame in a slot: it belongs to the owner of the slot.
    private final class Place {
        @exclusivity(unchecked) var content: Content?
    }

    /// - Parameters:
    ///   - stated: how the source says that its pictures have to be turned; nil: as the layout does.
    ///   - generation: that of the configuration that the stream starts with.
    init(
        _ writer: RingWriter, _ plan: PayloadPlan, _ layout: FrameLayout, stated: PictureOrientation?,
        generation: UInt64
    ) {
        self.writer = writer
        self.plan = plan
        isChained = layout.pixelFormat == .h264
        judge = JPEGDamageDetector(layout, stated: stated)
        newestGeneration = Atomic(generation)
        let slots = 0..<writer.plan.description.slots
        regions = slots.map { [UnsafeRawBufferPointer(writer.pixels(of: $0))] }
        places = slots.map { _ in Place() }
    }

    /// That of the last committed configuration, which only rises.
    var generation: UInt64 {
        get { newestGeneration.load(ordering: .relaxed) }
        set { newestGeneration.max(newValue, ordering: .relaxed) }
    }

    /// Frames from now on are not published, although the device continues for a moment.
    func end() { isOver.store(true, ordering: .relaxed) }

    /// A slot was filled, on the device's own thread.
    func filled(_ slot: FrameSlot, _ source: TimestampSource) {
        guard !isChained, !isOver.load(ordering: .relaxed) else { return }
        places[slot.index].content = publish(slot.index, slot.metadata, source)
    }

    /// On the loop: the result for the slot. Its frame is published now if that has not been done yet.
    func content(of slot: Int, _ metadata: FrameSlot.Metadata, _ source: TimestampSource) -> Content {
        let place = places[slot]
        guard let content = place.content else { return publish(slot, metadata, source) }
        // The device's thread changes what this shares with the slot.
        place.content = nil
        return content
    }

    /// A published picture has turned out to be damaged: those to come are looked at closely.
    func doubt() { isDoubted.store(true, ordering: .relaxed) }

    /// What is wrong with the frame in a slot of a stream that is no JPEG; nil: the device has given all of it.
    func damage(_ metadata: FrameSlot.Metadata) -> String? {
        if metadata.isCorrupt { return Self.isMarked }
        return plan.count(bytesUsed: metadata.bytesUsed) == nil ? Self.isShort : nil
    }

    private static let isMarked = "its source marks it as damaged"
    private static let isShort = "it is shorter than its format"

    /// Publishes the frame that the device has written to a slot, if it is whole.
    func publish(
        _ slot: Int, _ metadata: FrameSlot.Metadata, _ source: TimestampSource, isKeyframe: Bool? = nil
    ) -> Content {
        // Readers wait for what is done from here to where the frame is published, with code and memory that have gone
        // cold since the last one: what can be done afterwards is.
        let generation = generation
        let realtime = MonotonicClock.realtime(of: metadata.monotonicTime)
        if metadata.isCorrupt { return leaveOut(Self.isMarked) }
        var used = metadata.bytesUsed
        if let judge {
            if isDoubted.load(ordering: .relaxed), isDoubted.exchange(false, ordering: .relaxed) { judge.doubt() }
            switch judge.look(at: metadata, regions[slot]) {
            case .whole: break
            case .changed(let pictures): return leaveOut(pictures)
            case .damaged(let why): return leaveOut(why)
            }
            judge.complete(writer.pixels(of: slot), &used)
        }
        guard let bytes = plan.count(bytesUsed: used) else { return leaveOut(Self.isShort) }
        plan.fillUp(writer.pixels(of: slot), bytesUsed: used)
        let record = RingRecord(
            sequence: sequence, captureSequence: metadata.captureSequence, monotonic: metadata.monotonicTime,
            realtime: realtime, generation: generation, dropped: damaged, bytes: bytes,
            timestampSource: RingRecord.TimestampSource(source), isKeyframe: isKeyframe,
            presentationDelay: metadata.presentationDelay)
        let stamp = writer.publish(slot, record)
        if stamp != nil { sequence += 1 }
        let facts = FrameFacts(
            captureSequence: metadata.captureSequence, monotonic: metadata.monotonicTime, realtime: realtime,
            generation: generation, isKeyframe: isKeyframe, presentationDelay: metadata.presentationDelay)
        return .whole(
            Arrival(
                frame: FrameJob(slot: slot, regions: regions[slot], bytesUsed: used, facts: facts),
                publication: stamp.map { stamp in
                    RenditionRing.Publication(
                        place: FrameHeaderWriter.Place(slot: slot, offset: writer.plan.pixels(slot), stamp: stamp),
                        bytes: bytes)
                }))
    }

    /// Whole pictures that do not have what is said of the stream.
    func leaveOut(_ pictures: ActualPictures) -> Content {
        damaged += 1
        return .changed(pictures)
    }

    /// A frame is unusable; readers of the ring see that with the next one.
    func leaveOut(_ why: String?) -> Content {
        damaged += 1
        return .damaged(why)
    }
}
