public import JSON

/// When a camera that streams has its frames.
public struct PhotoBeat: Hashable, Sendable {
    /// When one of them was exposed.
    public var frame: Instant
    /// From one to the next, nanoseconds.
    public var period: Int64

    public init(frame: Instant, period: Int64) {
        self.frame = frame
        self.period = period
    }

    /// {frame, period}
    public var json: JSONValue { ["frame": .integer(frame), "period": .integer(period)] }

    /// nil when it is something else.
    public init?(json: JSONValue) {
        guard let frame = json["frame"]?.integer, let period = json["period"]?.integer, period > 0 else { return nil }
        self.init(frame: frame, period: period)
    }

    /// The first frame at that time or later, as long as the beat is kept.
    public func frame(from time: Instant) -> Instant {
        let (distance, isTooFar) = time.subtractingReportingOverflow(frame)
        guard !isTooFar, distance > 0, period > 0 else { return max(frame, time) }
        let rest = distance % period
        return rest == 0 ? time : time.addingReportingOverflow(period - rest).partialValue
    }
}
