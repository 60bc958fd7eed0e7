import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import FrameRing
import LinuxIO
import ZeroMQ

/// The ring of one rendition in one stream: its frames are written once, for all who read it.
final class RenditionRing {
    let writer: RingWriter
    var id: String { writer.plan.description.ring }
    /// It is the ring in which the device's frames are captured; it exists for the whole stream.
    let isNative: Bool
    /// Frames that were published so far within the stream.
    private(set) var sequence: UInt64

    /// Frames that follow one before its slot is used again.
    private static let keep = 4

    /// A slot that libzmq reads.
    final class Loan: MessageOwner, @unchecked Sendable {
        private let loan: RingLoan
        var bytes: UnsafeRawBufferPointer { loan.bytes }

        init(_ loan: RingLoan) { self.loan = loan }

        override func giveBack() { loan.giveBack() }
    }

    // One for each slot that was lent before.
    private var loans: [Loan?]

    /// - Parameters:
    ///   - layout: how the pictures lie in their slots.
    ///   - planes: where it isn't as the layout says; nil for a compressed picture.
    ///   - orientation: of the pictures in the ring.
    ///   - bytes: of one frame at most.
    ///   - lending: slots that may be lent at a time.
    ///   - sequence: frames of this rendition that were published within the stream.
    ///   - isRecorded: it may take all of the memory that is left, as a movie can't be made without it; others leave
    ///     three quarters to the rings of cameras.
    init(
        device: String, _ rendition: Rendition, stream: String, _ layout: FrameLayout, planes: [FrameHeader.Plane]?,
        orientation: PictureOrientation, bytes: Int, lending: Int, sequence: UInt64, isRecorded: Bool = false
    ) throws(RingError) {
        let (padded, overflow) = max(1, bytes).addingReportingOverflow(RingLayout.pageBytes - 1)
        guard !overflow else { throw .notARing(.slotBytes) }
        var description = RingDescription(
            ring: hexadecimal(randomBytes(8)), stream: stream, device: device, rendition: rendition.description,
            format: layout.pixelFormat.code, width: layout.dimensions.width, height: layout.dimensions.height,
            planes: planes?.map { RingDescription.Plane(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) }
                ?? [RingDescription.Plane(offset: 0, stride: 0, bytes: bytes)],
            extensions: layout.description.extensions, keep: 0, slots: 0,
            slotBytes: padded / RingLayout.pageBytes * RingLayout.pageBytes)
        description.orientation = orientation.quarters * 90
        description.isMirrored = orientation.isMirrored
        let ledger = RingLedger(filling: 1, keep: Self.keep, lending: lending)
        writer = try RingWriter(description, ledger, part: isRecorded ? 1 : 4)
        loans = Array(repeating: nil, count: writer.plan.description.slots)
        isNative = false
        self.sequence = sequence
    }

    /// The ring that the device's frames are captured in, as that of a rendition.
    init(native writer: RingWriter) {
        self.writer = writer
        loans = Array(repeating: nil, count: writer.plan.description.slots)
        isNative = true
        sequence = 0
    }

    /// A frame in the ring.
    struct Publication {
        var place: FrameHeaderWriter.Place
        var bytes: Int
    }

    /// Lends a frame; nil when enough are lent.
    func lend(_ slot: Int) -> Loan? {
        guard let loan = writer.lend(slot) else { return nil }
        if let known = loans[slot] { return known }
        let new = Loan(loan)
        loans[slot] = new
        return new
    }

    /// Publishes a frame of so many bytes, which the body writes.
    ///
    /// - Returns: nil if it does not fit.
    func publish(
        _ facts: FrameFacts, dropped: UInt64, _ source: TimestampSource, bytes: Int,
        _ fill: (UnsafeMutableRawBufferPointer) -> Void
    ) -> Publication? {
        guard bytes > 0, bytes <= writer.plan.description.slotBytes, let slot = writer.take() else { return nil }
        fill(UnsafeMutableRawBufferPointer(rebasing: writer.pixels(of: slot)[..<bytes]))
        let record = RingRecord(
            sequence: sequence, captureSequence: facts.captureSequence, monotonic: facts.monotonic,
            realtime: facts.realtime, generation: facts.generation, dropped: dropped, bytes: bytes,
            timestampSource: RingRecord.TimestampSource(source), isKeyframe: facts.isKeyframe, zoom: facts.zoom)
        guard let stamp = writer.publish(slot, record) else { return nil }
        sequence += 1
        return Publication(
            place: FrameHeaderWriter.Place(slot: slot, offset: writer.plan.pixels(slot), stamp: stamp), bytes: bytes)
    }
}

extension RingRecord.TimestampSource {
    init(_ source: TimestampSource) {
        switch source {
        case .startOfExposure: self = .startOfExposure
        case .endOfFrame: self = .endOfFrame
        case .dequeue: self = .dequeue
        }
    }
}
