import CFFmpeg

/// Keeps samples that are stored as they are to the times that come with them: a hole is silence, what comes twice is
/// left out. Where the clock that made them has run away from that of the times, single samples stand twice or are left
/// out, until they are close again.
struct SamplePacing: Hashable, Sendable {
    /// What becomes of a piece of sound.
    struct Step: Hashable, Sendable {
        /// Samples of silence in front of it.
        var silence: Int64 = 0
        /// So many of its first samples are left out.
        var skipped = 0
        /// So many of its last samples stand twice; below zero: are left out.
        var repeated = 0
    }

    /// Samples a second.
    let rate: Int
    /// Samples that have been placed.
    private(set) var position: Int64 = 0
    /// When the last piece ended, nanoseconds; nil: none has come.
    private var end: Int64?

    /// Times that come from a driver are off by less, and what is lost is more: nanoseconds.
    private static let hole: Int64 = 8_000_000
    /// Less than half of a frame of the picture, so that nobody sees it: nanoseconds.
    private static let drift: Int64 = 10_000_000
    /// One of so many samples, which nobody hears.
    private static let step = 2000

    init(rate: Int) { self.rate = rate }

    /// - Parameters:
    ///   - count: samples of the piece, of each channel.
    ///   - time: of the first one, nanoseconds from the beginning, or before it.
    mutating func place(_ count: Int, at time: Int64) -> Step {
        let behind = av_rescale(time, Int64(rate), 1_000_000_000) - position
        let follows = end.map { abs(time - $0) <= Self.hole } ?? false
        end = time + av_rescale(Int64(count), 1_000_000_000, Int64(rate))
        var step = Step()
        if !follows {
            step.silence = max(0, behind)
            step.skipped = Int(min(Int64(count), max(0, -behind)))
            // What follows on what was left out is looked at likewise.
            if step.skipped == count { end = nil }
        } else if abs(behind) > av_rescale(Self.drift, Int64(rate), 1_000_000_000) {
            let few = min(count, max(1, count / Self.step))
            step.repeated = behind > 0 ? few : -few
        }
        position += step.silence + Int64(count - step.skipped + step.repeated)
        return step
    }
}
