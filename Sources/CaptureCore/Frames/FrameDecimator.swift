/// Chooses from a stream of frames as many as were asked for, by their timestamps.
///
/// Frames are due at whole multiples of the asked interval after the first, kept exactly, so that nothing drifts. Taken
/// is the frame nearest to each such time: that it may come up to half an interval early keeps a camera's jitter from
/// costing frames. Each due time gives one frame, so there are never more than asked, also after a gap.
///
/// Made for the frame path: integers only, nothing allocated.
public struct FrameDecimator: Sendable {
    /// The asked interval in nanoseconds: `interval` and `fraction` of `scale`.
    private let interval: Int64
    private let fraction: Int64
    private let scale: Int64

    private var due: Int64 = 0
    /// What `due` lacks, in parts of `scale`.
    private var rest: Int64 = 0
    private var last: Int64?

    /// - Parameter rateMillionths: frames wanted in a million seconds; less than 1 is 1.
    public init(rateMillionths: Int) {
        let nanoseconds: Int64 = 1_000_000_000_000_000
        scale = max(1, Int64(rateMillionths))
        (interval, fraction) = nanoseconds.quotientAndRemainder(dividingBy: scale)
    }

    /// - Parameter interval: the time from one wanted frame to the next.
    public init(interval duration: FrameDuration) {
        let nanoseconds = Int128(duration.numerator) * 1_000_000_000
        let (whole, part) = nanoseconds.quotientAndRemainder(dividingBy: Int128(duration.denominator))
        scale = Int64(duration.denominator)
        (interval, fraction) = (Int64(clamping: whole), Int64(part))
    }

    /// True if the frame of that time is to be used.
    ///
    /// - Parameter timestamp: nanoseconds of the frame's own clock. One that lies before the last one by more than an
    ///   interval begins a new count.
    public mutating func admits(_ timestamp: Int64) -> Bool {
        guard let last, timestamp >= last &- interval else {
            begin(at: timestamp)
            return true
        }
        self.last = timestamp
        // The frame nearest to the due time: no later one can be nearer if the next comes as soon as this one came.
        let early = max(0, min(timestamp &- last, interval)) / 2
        let late = timestamp &- due
        guard late >= -early else { return false }
        if late >= interval {
            // A gap, or a camera slower than what was asked: what was missed is not made up for.
            begin(at: timestamp)
        } else {
            advance()
        }
        return true
    }

    private mutating func begin(at timestamp: Int64) {
        last = timestamp
        due = timestamp
        rest = 0
        advance()
    }

    private mutating func advance() {
        due = due &+ interval
        if rest >= scale - fraction {
            rest -= scale - fraction
            due = due &+ 1
        } else {
            rest += fraction
        }
    }
}
