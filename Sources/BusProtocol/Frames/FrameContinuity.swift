/// The frames that a subscriber missed, and those that it can use. Frames that depend on each other are usable from a
/// key frame on, until one is missing (`Protocol/spec/frames.md`).
public struct FrameContinuity: Hashable, Sendable {
    private var stream: String?
    private var sequence: UInt64 = 0
    private var isBroken = true
    /// One of this stream was used.
    private var hasBegun = false
    private var leftOut: UInt64 = 0

    public init() {}

    /// Takes the next frame that came.
    ///
    /// - Parameter isKeyframe: as in its header; nil: each stands for itself.
    /// - Returns: the frames of its topic that were missed or left out since the one that was used before; nil: it is
    ///   to be left out itself. Those before the first of a stream can't be known.
    public mutating func receive(stream: String, sequence: UInt64, isKeyframe: Bool?) -> UInt64? {
        let isNew = stream != self.stream || sequence <= self.sequence
        let missed = isNew ? 0 : sequence - self.sequence - 1
        (self.stream, self.sequence) = (stream, sequence)
        if isNew { (isBroken, hasBegun, leftOut) = (true, false, 0) }
        if missed > 0 { isBroken = true }
        leftOut = leftOut.addingReportingOverflow(missed).overflow ? .max : leftOut + missed
        if isBroken, isKeyframe == false {
            leftOut = leftOut == .max ? .max : leftOut + 1
            return nil
        }
        defer { (isBroken, hasBegun, leftOut) = (false, true, 0) }
        return hasBegun ? leftOut : 0
    }

    /// The frame that was given last could not be used after all.
    public mutating func interrupt() { isBroken = true }
}
