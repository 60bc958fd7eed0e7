import BusProtocol
import CaptureCore
import CaptureSources
import Delivery
import Imaging
import LinuxIO
import ZeroMQ

/// The last seconds of a stream as JPEG, for photos of a moment that is over.
///
/// A camera's own JPEG is copied as it comes. Others are encoded by the pool; the mailbox holds the newest frame only,
/// so one for which there is no time is left out. Used on the loop.
final class PastFrames {
    /// How frames become what is held.
    private enum Way {
        /// The device's own bytes.
        case direct
        case converted(RenditionWork)
        case impossible
    }

    /// What the header of a frame says that is held.
    private struct Record {
        var start: Instant
        var facts: FrameFacts
    }

    /// What is held is all of one stream.
    private struct Stream {
        let way: Way
        /// Of the JPEG.
        let layout: FrameLayout
        let id: String
        let frameTime: Int64
        let ring: PreRollRing
    }

    enum Finding {
        case found(KeptFrame)
        /// Nanoseconds since the oldest one that is held; nil: none is.
        case notHeld(oldest: Int64?)
        case noMemory
    }

    /// Milliseconds for which frames are held; 0: none are.
    private(set) var preRoll = 0
    /// Frames for which there was no time, or no slot, since the start of the process.
    private(set) var leftOut: UInt64 = 0

    private let pool: RenditionPool
    private var stream: Stream?
    private var records: [Record] = []
    private var nextRecord = 0

    /// As good as a photo's own.
    private static let quality = PhotoSettings.usualQuality
    /// Requests take their time to come: so much longer is held than what was asked for, nanoseconds.
    private static let slack: Int64 = 500_000_000
    /// Headers of all frames that there is ever room for: those of 10 s, at 400 a second.
    private static let maximumRecords = 4096
    /// A byte for each pixel is more than JPEG takes, but for pictures so small that their tables count.
    private static let leastBytes = 2 << 20

    init(_ pool: RenditionPool) { self.pool = pool }

    /// Holds frames for so long from now on; those that are held stay, as far as they are not too old.
    ///
    /// - Parameters:
    ///   - milliseconds: at most ``PhotoPreRoll/longest``; 0: none.
    ///   - run: the stream whose frames come; nil: there is none.
    func setPreRoll(_ milliseconds: Int, run: CameraStream?) {
        guard milliseconds != preRoll else { return }
        preRoll = milliseconds
        guard milliseconds > 0, let old = stream, let run else { return end(run) }
        let ring = makeRing(run)
        while old.ring.takeFirst({ item, bytes in ring.append(.frame, bytes, at: item.time) }) != nil {}
        stream = Stream(way: old.way, layout: old.layout, id: old.id, frameTime: old.frameTime, ring: ring)
    }

    // MARK: For the frame relay

    /// A stream has ended, or nobody wants its past any more; what waits to be encoded is given back.
    func end(_ run: CameraStream?) {
        if case .converted(let work)? = stream?.way, let waiting = work.replace(nil) { run?.release(waiting) }
        stream = nil
        records.removeAll(keepingCapacity: preRoll > 0)
        nextRecord = 0
    }

    /// A frame has come.
    func take(_ frame: FrameJob, of run: CameraStream) {
        guard preRoll > 0 else { return }
        let stream = stream ?? begin(run)
        switch stream.way {
        case .impossible: break
        case .direct:
            guard let bytes = frame.regions.first, let count = run.payloadPlan.count(bytesUsed: frame.bytesUsed) else {
                return
            }
            hold(UnsafeRawBufferPointer(rebasing: bytes.prefix(count)), frame.facts, run.exposureStart(frame.facts))
        case .converted(let work):
            if let old = work.replace(nil) {
                run.release(old)
                leftOut += 1
            }
            guard run.retain(frame) else {
                leftOut += 1
                return
            }
            _ = work.replace(frame)
            if !work.isScheduled { pool.schedule(work) }
        }
    }

    /// - Returns: whether that work was for here.
    func finished(_ work: RenditionWork, of run: CameraStream?) -> Bool {
        guard case .converted(let own)? = stream?.way, own === work else { return false }
        let job = work.job
        if let job, case .made = work.outcome {
            var facts = job.facts
            // The picture has it already.
            facts.zoom = DigitalZoom.whole
            hold(work.picture, facts, run?.exposureStart(facts) ?? facts.monotonic)
        } else {
            leftOut += 1
        }
        work.finish()
        if work.isWaiting { pool.schedule(work) }
        if let job { run?.release(job) }
        return true
    }

    // MARK: Taking one out

    /// The frame whose exposure began nearest to a moment, copied.
    ///
    /// - Parameters:
    ///   - moment: monotonic nanoseconds.
    ///   - memory: what the copy counts for.
    func find(_ moment: Instant, _ source: TimestampSource, in memory: PayloadMemory) -> Finding {
        guard let stream, let oldest = stream.ring.startTime else { return .notHeld(oldest: nil) }
        let moment = max(0, moment)
        let age = MonotonicClock.now() - oldest
        // Half a frame earlier it is still the nearest there was.
        guard moment >= oldest - stream.frameTime else { return .notHeld(oldest: age) }
        var nearest = oldest
        stream.ring.read { item, _ in
            if abs(item.time - moment) < abs(nearest - moment) { nearest = item.time }
            return item.time <= moment
        }
        guard let record = records.first(where: { $0.start == nearest }) else { return .notHeld(oldest: age) }
        let bytes = Message()
        var isCopied = false
        stream.ring.read { item, picture in
            guard item.time == nearest else { return true }
            isCopied = memory.fill(bytes, count: picture.count) { $0.copyMemory(from: picture) }
            return false
        }
        guard isCopied else { return .noMemory }
        return .found(
            KeptFrame(stream.layout, record.facts, stream: stream.id, source, start: record.start, bytes: bytes))
    }

    // MARK: Holding

    private func begin(_ run: CameraStream) -> Stream {
        let (way, layout) = Self.way(run.layout)
        let stream = Stream(way: way, layout: layout, id: run.id, frameTime: run.frameTime, ring: makeRing(run))
        self.stream = stream
        records.reserveCapacity(Self.maximumRecords)
        return stream
    }

    private func makeRing(_ run: CameraStream) -> PreRollRing {
        let duration = Int64(preRoll) * 1_000_000 + Self.slack
        let frames = duration / run.frameTime + 2
        let (bytes, isTooMany) = Int(frames).multipliedReportingOverflow(by: run.layout.dimensions.area)
        let wanted = isTooMany ? PhotoPreRoll.capacity : max(bytes, Self.leastBytes)
        return PreRollRing(duration: duration, bytes: min(wanted, PhotoPreRoll.capacity))
    }

    private func hold(_ picture: UnsafeRawBufferPointer, _ facts: FrameFacts, _ start: Instant) {
        guard let ring = stream?.ring, ring.append(.frame, picture, at: start) else {
            leftOut += 1
            return
        }
        let record = Record(start: start, facts: facts)
        if records.count < Self.maximumRecords { records.append(record) } else { records[nextRecord] = record }
        nextRecord = (nextRecord + 1) % Self.maximumRecords
    }

    private static func way(_ layout: FrameLayout) -> (Way, FrameLayout) {
        if layout.pixelFormat == .motionJPEG || layout.pixelFormat == .jpeg { return (.direct, layout) }
        let request = PictureRequest(encoding: .jpeg, dimensions: layout.dimensions, quality: quality)
        guard let converter = try? PictureConverter(from: layout, to: request) else { return (.impossible, layout) }
        return (.converted(RenditionWork(converter)), converter.outputLayout)
    }
}
