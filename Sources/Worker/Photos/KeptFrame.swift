import BusProtocol
import CaptureCore
import CaptureSources
import Imaging
import ZeroMQ

/// A frame that was kept for a photo: its bytes were copied once out of the slot, which the device needs again.
final class KeptFrame: @unchecked Sendable {
    // Made by one thread and then only read.

    let layout: FrameLayout
    let facts: FrameFacts
    /// The stream that it is of.
    let stream: String
    let timestampSource: TimestampSource
    /// When its exposure began: monotonic nanoseconds.
    let start: Instant
    /// All planes as the layout has them.
    let bytes: Message

    init(
        _ layout: FrameLayout, _ facts: FrameFacts, stream: String, _ timestampSource: TimestampSource, start: Instant,
        bytes: Message
    ) {
        self.layout = layout
        self.facts = facts
        self.stream = stream
        self.timestampSource = timestampSource
        self.start = start
        self.bytes = bytes
    }

    /// How bright it is: 0 (black) to 255; nil: that can't be measured. Takes its time: not for the loop.
    func luma() -> Double? {
        let whole = MeteredRegion(aroundX: 0.5, y: 0.5)
        return bytes.withUnsafeBytes { bytes in
            if let meter = LumaMeter(layout) { return meter.mean(of: whole, in: [bytes], bytesUsed: [bytes.count]) }
            let size = layout.dimensions
            let small = Dimensions(width: max(1, (size.width + 7) / 8), height: max(1, (size.height + 7) / 8))
            guard
                let converter = try? PictureConverter(
                    from: layout, to: PictureRequest(encoding: .gray, dimensions: small)),
                let meter = LumaMeter(converter.outputLayout)
            else { return nil }
            let picture = PictureBuffer()
            guard
                let count = try? converter.convert(
                    [bytes], bytesUsed: [bytes.count], zoom: DigitalZoom.whole, into: picture)
            else { return nil }
            return meter.mean(
                of: whole, in: [UnsafeRawBufferPointer(rebasing: picture.bytes.prefix(count))], bytesUsed: [count])
        }
    }
}

extension CameraStream {
    /// A frame's time, nanoseconds.
    var frameTime: Int64 { min(max((frameDuration ?? .usual).nanoseconds, 1_000_000), 60_000_000_000) }

    /// When a frame's exposure began, as far as the driver tells: monotonic nanoseconds.
    func exposureStart(_ facts: FrameFacts) -> Instant {
        switch timestampSource {
        case .startOfExposure: facts.monotonic
        case .endOfFrame, .dequeue: facts.monotonic - frameTime
        }
    }
}
