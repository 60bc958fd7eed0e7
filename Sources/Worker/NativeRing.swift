import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import FrameRing
import Glibc
import LinuxIO

/// The ring of a device's own pictures, which is also the memory that they are captured in: it is there from a stream's start to its
/// end, whoever reads it.
final class NativeRing: SlotMemory {
    /// The id of the stream: random, as 16 hexadecimal digits.
    let stream = hexadecimal(randomBytes(8))
    let writer: RingWriter
    /// How the bytes of a frame become a payload, here and in messages.
    let plan: PayloadPlan
    let slots: [UnsafeMutableRawBufferPointer]
    /// Frames that were published.
    @exclusivity(unchecked) private(set) var sequence: UInt64 = 0

    /// Slots that the device has at a time.
    static let queued = 4
    /// Frames that follow one before its slot is used again.
    static let keep = 4
    /// Slots that may be lent to the messages of slow readers.
    static let lent = 4

    /// - Parameter bytes: of a slot at least.
    init(device: String, _ layout: FrameLayout, bytes: Int) throws(SourceError) {
        let (padded, overflow) = max(1, bytes).addingReportingOverflow(RingLayout.pageBytes - 1)
        let slotBytes = padded / RingLayout.pageBytes * RingLayout.pageBytes
        guard !overflow, let plan = PayloadPlan(layout, regions: [slotBytes]) else {
            throw Self.failure("the frames' layout lies outside of their memory")
        }
        let description = RingDescription(
            ring: hexadecimal(randomBytes(8)), stream: stream, device: device,
            rendition: Rendition.Encoding.native.rawValue, format: layout.pixelFormat.code,
            width: layout.dimensions.width, height: layout.dimensions.height,
            planes: Self.planes(plan, slotBytes), keep: 0, slots: 0, slotBytes: slotBytes)
        do throws(RingError) {
            writer = try RingWriter(
                description, RingLedger(filling: Self.queued, keep: Self.keep, lending: Self.lent))
        } catch {
            let code: Int32
            switch error {
            case .notARing: throw Self.failure("they fit into no ring: \(error)")
            case .system(let cause): code = cause.code
            case .noRoom: code = ENOMEM
            }
            throw SourceError(
                .noResources, operation: "memfd_create", errno: code,
                message: "there is no memory for frames of \(slotBytes) bytes: \(error)")
        }
        self.plan = plan
        slots = (0..<writer.plan.description.slots).map { [writer] in writer.pixels(of: $0) }
    }

    func take() -> Int? { writer.take() }

    /// Tells the readers that no more comes: when the device writes to it no more.
    func close() { writer.close(.ended) }

    /// Publishes a frame that the device has written to its slot.
    ///
    /// - Returns: nil, and nothing is done, for a frame that is not whole.
    func publish(
        _ frame: FrameJob, generation: UInt64, dropped: UInt64, _ source: TimestampSource
    ) -> RenditionRing.Publication? {
        guard let bytes = plan.count(bytesUsed: frame.bytesUsed) else { return nil }
        plan.fillUp(slots[frame.slot], bytesUsed: frame.bytesUsed)
        let record = RingRecord(
            sequence: sequence, captureSequence: frame.facts.captureSequence, monotonic: frame.facts.monotonic,
            realtime: frame.facts.realtime, generation: generation, dropped: dropped, bytes: bytes,
            timestampSource: RingRecord.TimestampSource(source), isKeyframe: frame.facts.isKeyframe)
        guard let stamp = writer.publish(frame.slot, record) else { return nil }
        sequence += 1
        return RenditionRing.Publication(
            place: FrameHeaderWriter.Place(slot: frame.slot, offset: writer.plan.pixels(frame.slot), stamp: stamp),
            bytes: bytes)
    }

    // A picture whose planes' lines the driver doesn't tell is read as one piece.
    private static func planes(_ plan: PayloadPlan, _ slotBytes: Int) -> [RingDescription.Plane] {
        guard let planes = plan.planes else {
            return [RingDescription.Plane(offset: 0, stride: 0, bytes: plan.maximumBytes)]
        }
        guard planes.count == 1 || (planes.count <= RingLayout.maximumPlanes && planes.allSatisfy { $0.stride > 0 })
        else { return [RingDescription.Plane(offset: 0, stride: 0, bytes: plan.maximumBytes)] }
        return planes.map { RingDescription.Plane(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) }
    }

    private static func failure(_ why: String) -> SourceError { SourceError(.failed, operation: "start", message: why) }
}
