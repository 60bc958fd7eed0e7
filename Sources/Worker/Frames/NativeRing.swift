import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import FrameRing
import Glibc
import LinuxIO

/// The ring of a device's own pictures, which is also the memory that they are captured in: it is there from a stream's
/// start to its end, whoever reads it.
final class NativeRing: SlotMemory {
    /// The id of the stream: random, as 16 hexadecimal digits.
    let stream = hexadecimal(randomBytes(8))
    let publisher: FramePublisher
    /// Of its frames.
    let layout: FrameLayout
    var writer: RingWriter { publisher.writer }
    /// How the bytes of a frame become a payload, here and in messages.
    var plan: PayloadPlan { publisher.plan }
    let slots: [UnsafeMutableRawBufferPointer]
    // Unchecked access: see `PollSet`.
    @exclusivity(unchecked) private var outstanding = 0

    /// Slots that the device has at a time, those included that wait for the loop: no more than ``keep``, so that none
    /// of these is overwritten.
    static let queued = 4
    /// Frames that follow one before its slot is used again.
    static let keep = 4
    /// Slots that may be lent to the messages of slow readers.
    static let lent = 4

    /// - Parameters:
    ///   - stated: how the source says that its pictures have to be turned; nil: as the layout does.
    ///   - bytes: of a slot at least.
    ///   - generation: that of the configuration that the stream starts with.
    init(
        device: String, _ layout: FrameLayout, stated: PictureOrientation? = nil, bytes: Int, generation: UInt64 = 0
    ) throws(SourceError) {
        let (padded, overflow) = max(1, bytes).addingReportingOverflow(RingLayout.pageBytes - 1)
        let slotBytes = padded / RingLayout.pageBytes * RingLayout.pageBytes
        guard !overflow, let plan = PayloadPlan(layout, regions: [slotBytes]) else {
            throw Self.failure("the frames' layout lies outside of their memory")
        }
        var description = RingDescription(
            ring: hexadecimal(randomBytes(8)), stream: stream, device: device,
            rendition: Rendition.Encoding.native.rawValue, format: layout.pixelFormat.code,
            width: layout.dimensions.width, height: layout.dimensions.height,
            planes: Self.planes(plan, slotBytes), extensions: layout.description.extensions, keep: 0, slots: 0,
            slotBytes: slotBytes)
        description.orientation = layout.description.orientation.quarters * 90
        description.isMirrored = layout.description.orientation.isMirrored
        let writer: RingWriter
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
        self.layout = layout
        publisher = FramePublisher(writer, plan, layout, stated: stated, generation: generation)
        slots = (0..<writer.plan.description.slots).map { writer.pixels(of: $0) }
    }

    /// A slot that the device is to fill. Those that it has filled, and that the loop hasn't taken yet, are among the
    /// ones that it may have: so no frame is overwritten before the loop has seen it, however late it is.
    func take() -> Int? {
        guard outstanding < Self.queued, let slot = writer.take() else { return nil }
        outstanding += 1
        return slot
    }

    func filled(_ slot: FrameSlot, _ source: TimestampSource) { publisher.filled(slot, source) }

    /// The loop has taken a slot from the device.
    func taken() { outstanding -= 1 }

    /// Tells the readers that no more comes: when the device writes to it no more.
    func close() { writer.close(.ended) }

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
