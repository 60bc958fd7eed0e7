import BusProtocol
import CaptureCore
import CaptureSources
import FrameRing
import LinuxIO

/// The ring of one rendition of a running microphone's sound: each period is written once, for all who read it.
final class SoundRing {
    let rendition: SoundRendition
    /// Periods that were published so far within the stream.
    private(set) var sequence: UInt64
    private let device: String
    private let stream: String
    private let maker: SoundMaker
    private let periodBytes: Int
    private let keep: Int
    private let isRead: Bool
    /// nil: there is no memory for it.
    private var writer: RingWriter?
    private var memoryError: BusError?

    /// How much sound is kept for readers that are held up: nanoseconds.
    private static let keptTime: Int64 = 2_500_000_000
    /// Periods that are kept: at least, and at most.
    private static let keeps = 4...RingLayout.maximumSlots - 1
    /// Bytes of a ring, beyond which it keeps less.
    private static let mostBytes = 16 << 20
    /// Frames by which a resampler may give more of a period than its rate says.
    private static let spareFrames = 32

    /// - Parameters:
    ///   - sequence: periods of this rendition that were published within the stream.
    ///   - source: as the sound comes.
    init(
        _ rendition: SoundRendition, sequence: UInt64, device: String, stream: String, _ source: SoundFormat,
        _ timestampSource: SoundTimestampSource
    ) {
        self.rendition = rendition
        self.sequence = sequence
        self.device = device
        self.stream = stream
        maker = SoundMaker(rendition, source)
        isRead = timestampSource == .read
        let made = maker.format
        let frames = (source.periodFrames * made.rate + source.rate - 1) / max(1, source.rate)
        periodBytes = (frames + (maker.isPassThrough ? 0 : Self.spareFrames)) * made.frameBytes
        let pages = (periodBytes + RingLayout.pageBytes - 1) / RingLayout.pageBytes
        let wanted = Self.keptTime / max(1, source.nanoseconds(frames: Int64(source.periodFrames)))
        let room = Self.mostBytes / max(1, pages * RingLayout.pageBytes)
        keep = min(max(min(Int(wanted), room), Self.keeps.lowerBound), Self.keeps.upperBound)
    }

    var id: String? { writer?.plan.description.ring }

    /// Why there is no ring, if so.
    var error: BusError? { maker.error ?? memoryError }

    /// Makes the memory, if there is none.
    ///
    /// - Returns: nil when it was there already, or can't be made: ``error`` says why.
    func open() -> RingWriter? {
        guard writer == nil, maker.error == nil else { return nil }
        let made = maker.format
        let description = RingDescription(
            ring: hexadecimal(randomBytes(8)), stream: stream, device: device, rendition: rendition.description,
            sound: RingDescription.Sound(
                sampleFormat: made.sampleFormat.rawValue, rate: made.rate, channels: made.channels,
                frameBytes: made.frameBytes),
            periodBytes: periodBytes, keep: 0, slots: 0)
        do throws(RingError) {
            let new = try RingWriter(description, RingLedger(filling: 1, keep: keep, lending: 0))
            (writer, memoryError) = (new, nil)
            return new
        } catch {
            memoryError = .withoutRing("There is no memory for a ring of this sound: \(error)")
            return nil
        }
    }

    /// Ends the ring. What is in it stays readable, and it is never written to again.
    func close(_ why: RingClosing) {
        writer?.close(why)
        writer = nil
    }

    /// Publishes what comes of a period.
    ///
    /// - Parameters:
    ///   - native: the device's own bytes.
    ///   - realtimeOffset: from the monotonic time to that of the wall, nanoseconds.
    func publish(
        _ period: SoundPeriod, _ native: UnsafeRawBufferPointer, overruns: UInt64, generation: UInt64,
        realtimeOffset: Int64
    ) {
        guard let writer, let piece = maker.make(period, native) else { return }
        let format = maker.format
        let most = writer.plan.description.slotBytes / format.frameBytes * format.frameBytes
        var place = 0
        // More than a slot takes comes seldom, and is then several periods.
        while place < piece.samples.count, let slot = writer.take() {
            let part = UnsafeRawBufferPointer(
                rebasing: piece.samples[place..<min(piece.samples.count, place + most)])
            writer.pixels(of: slot).copyMemory(from: part)
            let passed = place / format.frameBytes
            let monotonic = piece.monotonic + format.nanoseconds(frames: Int64(passed))
            writer.publish(
                slot,
                RingRecord(
                    soundSequence: sequence, firstFrame: piece.firstFrame + UInt64(passed), monotonic: monotonic,
                    realtime: monotonic + realtimeOffset, generation: generation, overruns: overruns,
                    bytes: part.count, isRead: isRead))
            sequence += 1
            place += part.count
        }
    }
}
