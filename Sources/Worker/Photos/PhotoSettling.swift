import CaptureCore

/// Whether a camera has found its exposure, focus and white balance: by what it says of itself, else by how bright its
/// frames are.
///
/// Only frames count whose exposure began after everything was set; of time alone nothing is concluded.
struct PhotoSettling: Hashable {
    enum Verdict: Hashable {
        case waiting
        case settled
        /// It has had its frames, and goes on.
        case late
    }

    /// The driver itself says when its exposure is there: its frames needn't be measured.
    let isTold: Bool
    /// Frames that it is given.
    private let limit: Int
    /// Frames that may still be of the setting before.
    private let delay: Int
    private let begin: Instant
    private var earliest: Instant
    private var isAdjusting: Bool
    private var frames = 0
    private var lumas: [Double] = []

    /// So many frames after one another that are as bright as each other.
    private static let steady = 3
    /// As many for a picture that is all but black, as many cameras' first ones are.
    private static let steadyDark = 9
    private static let dark = 12.0
    private static let settingDelay = 3
    private static let (fewest, most) = (12, 90)
    /// Nanoseconds of frames, between those bounds.
    private static let time: Int64 = 3_000_000_000

    /// - Parameters:
    ///   - begin: when everything was set.
    ///   - frame: a frame's time, nanoseconds.
    ///   - isSet: something was set that its frames show later where the driver doesn't tell.
    init(since begin: Instant, frame: Int64, isTold: Bool, isAdjusting: Bool, isSet: Bool) {
        self.begin = begin
        self.isTold = isTold
        self.isAdjusting = isAdjusting
        earliest = begin
        delay = isSet && !isTold ? Self.settingDelay : 0
        limit = delay + min(max(Int(clamping: Self.time / max(frame, 1)), Self.fewest), Self.most)
    }

    /// The camera is on its way to something, or has arrived, as far as it says so.
    mutating func told(isAdjusting: Bool, at now: Instant) {
        guard isAdjusting != self.isAdjusting else { return }
        self.isAdjusting = isAdjusting
        lumas = []
        if !isAdjusting { earliest = max(earliest, now) }
    }

    /// A whole frame has come.
    mutating func took(exposedFrom start: Instant) -> Verdict {
        guard start >= begin else { return .waiting }
        frames += 1
        if isTold, !isAdjusting, start >= earliest { return .settled }
        return frames >= limit ? .late : .waiting
    }

    /// A frame whose exposure began after everything was set was measured: 0 (black) to 255; nil: such frames can't be
    /// measured.
    mutating func measured(_ luma: Double?) -> Verdict {
        guard !isTold, !isAdjusting, let luma, frames >= delay else { return .waiting }
        lumas.append(luma)
        let recent = lumas.suffix(luma < Self.dark ? Self.steadyDark : Self.steady)
        guard recent.count >= (luma < Self.dark ? Self.steadyDark : Self.steady), let least = recent.min(),
            let greatest = recent.max()
        else { return .waiting }
        return greatest - least <= 3 + greatest / 50 ? .settled : .waiting
    }
}
