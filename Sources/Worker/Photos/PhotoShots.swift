import CaptureCore

/// Which frames become the photos of a request.
struct PhotoShots: Hashable {
    let count: Int
    /// Nanoseconds from one to the next; 0: every frame.
    private let interval: Int64
    /// Half a frame's time: a frame that far before is still the nearest.
    private let tolerance: Int64
    /// How many there are.
    private(set) var taken = 0
    /// How much later than asked the last one of them was, nanoseconds; nil: it was not, or was the first.
    private(set) var late: Int64?
    private var earliest: Instant
    private var first: Instant?
    private var last: Instant?

    /// - Parameters:
    ///   - frame: a frame's time, nanoseconds.
    ///   - time: when the first is wanted; nil: as soon as there is one.
    init(_ count: Int, interval: Int64, frame: Int64, at time: Instant?, now: Instant) {
        self.count = count
        self.interval = interval
        tolerance = frame / 2
        earliest = time.map { $0.subtractingReportingOverflow(frame / 2).partialValue } ?? now
    }

    var isOver: Bool { taken >= count }

    /// Whether the next one is a frame whose exposure began then.
    func wants(exposedFrom start: Instant) -> Bool {
        guard !isOver, start >= earliest else { return false }
        guard let first, interval > 0 else { return true }
        return Int128(start) >= Int128(first) + Int128(interval) * Int128(taken) - Int128(tolerance)
    }

    /// The next one is a frame whose exposure began then.
    ///
    /// - Returns: its number, from 0.
    mutating func take(exposedFrom start: Instant) -> Int {
        late = delay(of: start)
        (first, last) = (first ?? start, start)
        taken += 1
        return taken - 1
    }

    // Of each frame the next one was wanted, else the one that is nearest to its time.
    private func delay(of start: Instant) -> Int64? {
        guard let first, let last, tolerance > 0 else { return nil }
        let wanted =
            interval > 0
            ? Int128(first) + Int128(interval) * Int128(taken) : Int128(last) + Int128(tolerance) * 2
        let delay = Int128(start) - wanted
        return delay > Int128(tolerance) * (interval > 0 ? 2 : 1) ? Int64(clamping: delay) : nil
    }
}
