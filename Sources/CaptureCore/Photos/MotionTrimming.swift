/// Where a live photo's movie is cut, so that it doesn't show the camera being lifted to the eye, or put away
/// (auto-trim).
///
/// It is told of each picture how much it differs from the one before: the mean difference of small grey pictures, 0 to
/// 255. Around the photo somebody holds still; where the pictures change much more than there, several of them in a
/// row, the movie begins or ends.
public struct MotionTrimming: Hashable, Sendable {
    private struct Change: Hashable, Sendable {
        var time: Instant
        /// From the picture before to this one.
        var amount: Double
    }

    /// In the order of their times; the oldest are given up.
    private var changes: [Change] = []

    /// More than the movie's longest at 240 pictures a second.
    private static let capacity = 1024
    /// Pictures around the photo that say how much changes while the camera is held still.
    private static let calmCount = 9
    /// What is less is no movement of the camera, however still all else is.
    private static let least = 12.0
    /// So many times as much as around the photo.
    private static let factor = 6.0
    /// So many in a row: one alone is a flash, or a light that was switched on.
    private static let row = 3

    public init() { changes.reserveCapacity(Self.capacity) }

    /// A picture has come.
    public mutating func add(_ amount: Double, at time: Instant) {
        guard amount.isFinite, changes.last.map({ time > $0.time }) ?? true else { return }
        if changes.count == Self.capacity { changes.removeFirst(Self.capacity / 2) }
        changes.append(Change(time: time, amount: amount))
    }

    /// Pictures come from another stream.
    public mutating func removeAll() { changes.removeAll(keepingCapacity: true) }

    /// When the camera had come to rest before a photo; nil: it was at rest all the time.
    public func start(of window: LivePhotoWindow) -> Instant? {
        guard let limit = limit(window.moment) else { return nil }
        var inRow = 0
        var nearest: Instant?
        for change in changes.reversed() where change.time <= window.moment && change.time > window.start {
            inRow = change.amount > limit ? inRow + 1 : 0
            if inRow == 1 { nearest = change.time }
            if inRow == Self.row { return nearest }
        }
        return nil
    }

    /// When the last picture was taken after a photo before the camera was moved; nil: it is at rest as far as is
    /// known.
    public func end(of window: LivePhotoWindow) -> Instant? {
        guard let limit = limit(window.moment) else { return nil }
        var inRow = 0
        var last = window.moment
        var still = window.moment
        for change in changes where change.time > window.moment && change.time <= window.end {
            inRow = change.amount > limit ? inRow + 1 : 0
            if inRow == 1 { still = last }
            if inRow == Self.row { return still }
            last = change.time
        }
        return nil
    }

    // nil: too little is known to say what is much.
    private func limit(_ moment: Instant) -> Double? {
        // Those nearest to the photo, from there outwards.
        var after = changes.firstIndex { $0.time > moment } ?? changes.count
        var before = after - 1
        var nearest: [Double] = []
        while nearest.count < Self.calmCount {
            let isBefore =
                before >= 0
                && (after == changes.count || moment &- changes[before].time <= changes[after].time &- moment)
            guard isBefore || after < changes.count else { break }
            nearest.append(changes[isBefore ? before : after].amount)
            if isBefore { before -= 1 } else { after += 1 }
        }
        guard nearest.count > Self.row else { return nil }
        nearest.sort()
        return max(Self.least, Self.factor * nearest[nearest.count / 2])
    }
}
