/// A movie's time: the source's from the movie's start on, without what was cut out.
///
/// Times are nanoseconds on the source's clock. They need not come in order: sound comes later than the picture that
/// goes with it.
struct Timeline {
    private struct Cut {
        var begin: Int64
        /// `.max`: not known yet.
        var end: Int64
    }

    /// The movie's zero; nil: it has none yet.
    private(set) var start: Int64?
    /// By time, one after the other.
    private var cuts: [Cut] = []
    /// What comes later than a cut that is forgotten is left out.
    private var earliest = Int64.min

    /// Cuts that are kept for what may still come from before them.
    private static let mostCuts = 32

    /// Whether a cut has begun that has not ended.
    var isCut: Bool { cuts.last?.end == .max }

    mutating func begin(at time: Int64) { start = start ?? time }

    /// Begins a cut, not before the last one's end.
    mutating func cut(from time: Int64) {
        guard !isCut else { return }
        if cuts.count == Self.mostCuts, let oldest = cuts.first {
            if let start { self.start = start + max(0, oldest.end - max(start, oldest.begin)) }
            earliest = oldest.end
            cuts.removeFirst()
        }
        cuts.append(Cut(begin: max(time, cuts.last?.end ?? earliest), end: .max))
    }

    /// Ends the cut, not before its beginning.
    mutating func cut(until time: Int64) {
        guard isCut, let last = cuts.indices.last else { return }
        cuts[last].end = max(time, cuts[last].begin)
        if cuts[last].end == cuts[last].begin { cuts.removeLast() }
    }

    /// Nanoseconds from the movie's start, below zero in front of it; zero while it has none; nil: that is cut out.
    func movieTime(_ time: Int64) -> Int64? {
        guard time >= earliest else { return nil }
        var left: Int64 = 0
        for cut in cuts {
            if time < cut.begin { break }
            guard time >= cut.end else { return nil }
            if let start { left += max(0, cut.end - max(start, cut.begin)) }
        }
        return start.map { time - $0 - left } ?? 0
    }

    /// The next moments of a piece of sound that are not cut out, from one of them on; nil: there is none.
    ///
    /// - Parameters:
    ///   - count: moments of the piece.
    ///   - time: of its first one.
    ///   - rate: moments a second.
    func moments(from first: Int, of count: Int, at time: Int64, rate: Int) -> Range<Int>? {
        /// The first moment that is not before a time.
        func moment(notBefore limit: Int64) -> Int {
            guard limit > time else { return 0 }
            let (distance, isFar) = limit.subtractingReportingOverflow(time)
            // Not further than the end of the piece.
            let reach = Int64(count) * 1_000_000_000 / Int64(rate) + 1
            guard !isFar, distance < reach else { return count }
            return min(count, Int((distance * Int64(rate) + 999_999_999) / 1_000_000_000))
        }
        var first = max(first, moment(notBefore: earliest))
        for cut in cuts where first < count {
            let begin = moment(notBefore: cut.begin)
            if begin > first { return first..<begin }
            first = max(first, moment(notBefore: cut.end))
        }
        return first < count ? first..<count : nil
    }
}
