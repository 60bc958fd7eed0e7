import BusProtocol
import CaptureCore
import Imaging
import Synchronization

/// What a frame's header needs to know of it.
struct FrameFacts {
    var captureSequence: UInt64
    /// CLOCK_MONOTONIC and CLOCK_REALTIME, nanoseconds.
    var monotonic: Int64
    var realtime: Int64
    /// That of the configuration with which it was published.
    var generation: UInt64 = 0
    /// Where frames build on one another: whether this one builds on none before it.
    var isKeyframe: Bool?
    /// As ``FrameSlot/presentationDelay``.
    var presentationDelay: Int64 = 0
    /// How far its middle is enlarged in what is made of it, in thousandths.
    var zoom = DigitalZoom.whole
}

/// A frame that is to be converted: lent by the loop until the conversion is told to be over.
struct FrameJob {
    var slot: Int
    var regions: [UnsafeRawBufferPointer]
    var bytesUsed: [Int]
    var facts: FrameFacts
}

/// The making of one rendition: a mailbox of one frame, in which a newer frame replaces one that nobody has begun, and
/// the machine that converts it.
///
/// The loop fills the mailbox and takes results; in between one thread of the pool at a time works here.
final class RenditionWork: @unchecked Sendable {
    enum Outcome {
        /// There is a ``picture``.
        case made
        case failed(ConversionError)
    }

    // Guarded by `lock`.
    private let lock = Mutex(())
    private var mailbox: FrameJob?

    // Used by the thread that converts, then by the loop, until it schedules the next conversion.
    private let converter: PictureConverter
    private let buffer = PictureBuffer()
    private(set) var job: FrameJob?
    private(set) var outcome = Outcome.made
    private var pictureBytes = 0

    /// What was made, until the next conversion is scheduled.
    var picture: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer.bytes.prefix(pictureBytes)) }

    /// How the planes lie in a picture.
    private(set) var layout: FrameLayout
    /// Used by the loop only: a thread will take the mailbox's frame, or is at it.
    var isScheduled = false

    init(_ converter: PictureConverter) {
        self.converter = converter
        layout = converter.outputLayout
    }

    /// No more than so many of its frames come in a million seconds.
    func limitRate(_ rateMillionths: Int) {
        guard let limit = FormatExtensions.Ratio(1_000_000, rateMillionths) else { return }
        let own = layout.description.extensions.frameDuration
        let isSlower = own.map { limit.numerator * $0.denominator > $0.numerator * limit.denominator } ?? false
        if isSlower { layout.description.extensions.frameDuration = limit }
    }

    /// Puts a frame into the mailbox and takes out the one that lay there.
    func replace(_ job: FrameJob?) -> FrameJob? {
        lock.withLock { _ in
            let old = mailbox
            mailbox = job
            return old
        }
    }

    var isWaiting: Bool { lock.withLock { _ in mailbox != nil } }

    /// Converts the frame in the mailbox, on a thread of the pool.
    func convert() {
        job = replace(nil)
        guard let job else { return }
        do throws(ConversionError) {
            pictureBytes = try converter.convert(
                job.regions, bytesUsed: job.bytesUsed, zoom: job.facts.zoom, into: buffer)
            outcome = .made
        } catch {
            outcome = .failed(error)
        }
    }

    /// Forgets the frame that was converted, on the loop.
    func finish() { job = nil }
}
