/// Which pictures and sound are the movie of a live photo: as long before the photo's moment as after it, if nothing is
/// in the way.
///
/// All times are monotonic nanoseconds. What was taken at either end belongs to it, so there is always the photo's own
/// picture.
public struct LivePhotoWindow: Hashable, Sendable {
    /// When the photo's exposure began.
    public let moment: Instant
    public private(set) var start: Instant
    public private(set) var end: Instant

    /// Nanoseconds before the moment, and after it, at most.
    public static let reach: Int64 = 1_500_000_000

    /// - Parameter earliest: nothing older may be in it, or is held; nil: there is no such time.
    public init(moment: Instant, notBefore earliest: Instant? = nil) {
        self.moment = moment
        let start = moment.subtractingReportingOverflow(Self.reach).partialValue
        self.start = min(max(start, earliest ?? start), moment)
        end = moment.addingReportingOverflow(Self.reach).partialValue
    }

    /// Nanoseconds from its first picture's time to the photo's: where in the movie the photo stands.
    public var photoDisplayTime: Int64 { moment - start }
    /// Nanoseconds.
    public var duration: Int64 { end - start }

    public func contains(_ time: Instant) -> Bool { start <= time && time <= end }

    /// What comes by now is not in it any more.
    public func isOver(at newest: Instant) -> Bool { newest > end }

    /// Nothing that is taken later is in it.
    public mutating func end(at time: Instant) { end = max(moment, min(end, time)) }

    /// Nothing that was taken earlier is in it.
    public mutating func begin(at time: Instant) { start = min(moment, max(start, time)) }
}
