import BusProtocol
import CaptureCore
import Imaging

/// Measures how bright a part of a frame is, each time that it is asked: of one frame, and then of none until the next
/// time.
///
/// Luma is read where it lies, on the loop; compressed pictures and those without luma are made into a small grey one
/// by the pool.
final class FrameMeter {
    private enum Way {
        case direct(LumaMeter)
        case converted(RenditionWork, LumaMeter)
        case impossible
    }

    private let pool: RenditionPool
    private var wanted: (region: MeteredRegion, notBefore: Int64)?
    /// What a frame under way in the pool is measured for.
    private var converting: MeteredRegion?
    /// Made when the stream's first frame is to be measured.
    private var way: Way?

    /// Told once for each time that it was asked, as soon as there is a frame that is not damaged: 0 (black) to 255;
    /// nil: frames like these can't be measured.
    var onLuma: ((Double?) -> Void)?

    init(_ pool: RenditionPool) { self.pool = pool }

    /// Asks for the next frame that was taken then or later; instead of what was asked before.
    ///
    /// - Parameter time: monotonic nanoseconds.
    func ask(_ region: MeteredRegion, notBefore time: Int64) {
        wanted = (region, time)
        converting = nil
    }

    /// Cancels the measurement.
    func stop() {
        wanted = nil
        converting = nil
    }

    // MARK: For the frame relay

    /// A stream has ended; what waits to be converted is given back.
    func end(_ run: CameraStream?) {
        if case .converted(let work, _)? = way, let waiting = work.replace(nil) { run?.release(waiting) }
        way = nil
        // A measurement under way is not returned any more; it is repeated in the next stream.
        if let region = converting { wanted = (region, 0) }
        converting = nil
    }

    /// A frame has come.
    func take(_ frame: FrameJob, of run: CameraStream?) {
        guard let wanted, let run, frame.facts.monotonic >= wanted.notBefore else { return }
        let way = way ?? Self.way(run.layout)
        self.way = way
        switch way {
        case .direct(let meter):
            self.wanted = nil
            // One that can't be read is not a reason to wait for ever.
            onLuma?(meter.mean(of: wanted.region, in: frame.regions, bytesUsed: frame.bytesUsed))
        case .converted(let work, _):
            guard !work.isScheduled, run.retain(frame) else { return }
            self.wanted = nil
            converting = wanted.region
            if let old = work.replace(frame) { run.release(old) }
            pool.schedule(work)
        case .impossible:
            self.wanted = nil
            onLuma?(nil)
        }
    }

    /// - Returns: whether that work was for here.
    func finished(_ work: RenditionWork, of run: CameraStream?) -> Bool {
        guard case .converted(let own, let meter)? = way, own === work else { return false }
        let region = converting
        converting = nil
        var luma: Double?
        var isDamaged = false
        switch work.outcome {
        case .made:
            luma = region.flatMap { meter.mean(of: $0, in: [work.picture], bytesUsed: [work.picture.count]) }
        case .failed: isDamaged = true
        }
        let job = work.job
        work.finish()
        if let job { run?.release(job) }
        guard let region else { return true }
        // One damaged picture says nothing of the next.
        if isDamaged { wanted = (region, 0) } else { onLuma?(luma) }
        return true
    }

    private static func way(_ layout: FrameLayout) -> Way {
        if let meter = LumaMeter(layout) { return .direct(meter) }
        // An eighth is what JPEG gives for next to nothing.
        let size = layout.dimensions
        let small = Dimensions(width: max(1, (size.width + 7) / 8), height: max(1, (size.height + 7) / 8))
        guard
            let converter = try? PictureConverter(from: layout, to: PictureRequest(encoding: .gray, dimensions: small)),
            let meter = LumaMeter(converter.outputLayout)
        else { return .impossible }
        return .converted(RenditionWork(converter), meter)
    }
}
