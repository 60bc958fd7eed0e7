/// The numbers and times of sound that comes out of a resampler, which holds something back of what goes in.
///
/// The first frame that comes out lies on the first that went in, wherever that was in the stream, and every further
/// one follows on the one before, until sound is missing.
public struct SoundTimeline: Hashable, Sendable {
    /// Frames a second, of what goes in and of what comes out.
    public let inputRate: Int
    public let outputRate: Int
    /// The number of the next frame that comes out; nil: of the next that goes in, in the rate of what comes out.
    private var next: UInt64?
    /// How far the numbers have come: they never go back.
    private var reached: UInt64 = 0

    public init(inputRate: Int, outputRate: Int) {
        self.inputRate = inputRate
        self.outputRate = outputRate
    }

    /// What goes in next does not follow on what went in before, and the resampler has forgotten that.
    public mutating func restart() { next = nil }

    /// Takes what came out when a period went in.
    ///
    /// - Parameters:
    ///   - firstFrame: the number of the first frame that went in.
    ///   - time: when that was taken, monotonic nanoseconds.
    ///   - delay: what had gone in before it and not come out, nanoseconds.
    ///   - frames: how many came out.
    /// - Returns: the number of the first frame that came out, and when that was taken.
    public mutating func place(
        firstFrame: UInt64, time: Int64, delay: Int64, frames: Int
    ) -> (firstFrame: UInt64, time: Int64) {
        let number = max(next ?? scaled(firstFrame), reached)
        let (end, overflow) = number.addingReportingOverflow(UInt64(clamping: frames))
        reached = overflow ? .max : end
        next = reached
        return (number, time - delay)
    }

    // To the nearest.
    private func scaled(_ frame: UInt64) -> UInt64 {
        guard inputRate > 0 else { return frame }
        let twice = Int128(frame) * Int128(outputRate) * 2 / Int128(inputRate)
        return UInt64(clamping: (twice + 1) / 2)
    }
}
