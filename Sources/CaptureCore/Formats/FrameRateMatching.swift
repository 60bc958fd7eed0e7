extension FrameDuration {
    /// How far apart two durations are, as a ratio less one; the same for the rates. 0: equal.
    func distance(to other: FrameDuration) -> Double {
        if self == other { return 0 }
        let ratio = seconds / other.seconds
        return max(ratio, 1 / ratio) - 1
    }

    /// Within 100 ns, the unit in which USB cameras count frame intervals (UVC `dwFrameInterval`): 333333/10000000 is
    /// 1/30.
    func isWithinCameraUnit(of other: FrameDuration) -> Bool { abs(seconds - other.seconds) <= 1.0001e-7 }
}

extension FrameRateRange {
    /// The duration within this range that is nearest to that one; of two equally near the shorter.
    func nearest(to duration: FrameDuration) -> FrameDuration {
        if duration <= minFrameDuration { return minFrameDuration }
        if duration >= maxFrameDuration { return maxFrameDuration }
        let (below, above) = neighbours(of: duration)
        return duration.seconds - below.seconds <= above.seconds - duration.seconds ? below : above
    }

    /// The shortest duration within this range that isn't shorter than that one; nil if all are.
    func shortest(from duration: FrameDuration) -> FrameDuration? {
        if duration <= minFrameDuration { return minFrameDuration }
        if duration > maxFrameDuration { return nil }
        let (below, above) = neighbours(of: duration)
        return below == duration ? below : above
    }

    /// The longest duration within this range that isn't longer than that one; nil if all are.
    func longest(upTo duration: FrameDuration) -> FrameDuration? {
        if duration < minFrameDuration { return nil }
        if duration >= maxFrameDuration { return maxFrameDuration }
        return neighbours(of: duration).0
    }

    /// The durations of this range on both sides of one that lies within it; twice that one itself if the range has it.
    private func neighbours(of duration: FrameDuration) -> (FrameDuration, FrameDuration) {
        guard let step else { return (duration, duration) }
        // Products of three parts stay within 128 bits as long as each has 32, as V4L2's have.
        let parts = [duration, minFrameDuration, maxFrameDuration, step].flatMap { [$0.numerator, $0.denominator] }
        guard parts.allSatisfy({ $0 <= Int(UInt32.max) }) else { return (minFrameDuration, maxFrameDuration) }
        let wide = { (part: Int) in Int128(part) }
        let (a, b) = (wide(minFrameDuration.numerator), wide(minFrameDuration.denominator))
        let over = wide(duration.numerator) * b - a * wide(duration.denominator)
        let steps = over * wide(step.denominator) / (wide(duration.denominator) * b * wide(step.numerator))
        func after(_ count: Int128) -> FrameDuration {
            let numerator = a * wide(step.denominator) + count * wide(step.numerator) * b
            let duration = FrameDuration(reducing: numerator, b * wide(step.denominator))
            return duration.map { min($0, maxFrameDuration) } ?? maxFrameDuration
        }
        let below = after(steps)
        return below == duration ? (duration, duration) : (below, after(steps + 1))
    }
}

extension FrameDuration {
    fileprivate init?(reducing numerator: Int128, _ denominator: Int128) {
        var (a, b) = (numerator, denominator)
        while b != 0 { (a, b) = (b, a % b) }
        guard a > 0, let numerator = Int(exactly: numerator / a), let denominator = Int(exactly: denominator / a) else {
            return nil
        }
        self.init(numerator, denominator)
    }
}

/// What the rates of a format give to a wish.
struct FrameRateMatch {
    /// nil: the driver doesn't let the rate be chosen.
    var duration: FrameDuration?
    /// 0: just what was asked; else how far from it, infinite without any rate.
    var distance: Double

    /// - Parameter present: the rate that a range is left at if it may.
    init(_ request: FrameRateRequest, in ranges: [FrameRateRange], present: FrameDuration?) {
        switch request {
        case .rate(let rate):
            self.init(FrameDuration(rate), in: ranges, tolerance: 2e-4)
        case .range(let low, let high):
            if let low, low == high {
                self.init(low, in: ranges, tolerance: 0)
            } else {
                self = Self.within(low, high, in: ranges, present: present)
            }
        }
    }

    private static let none = Self(duration: nil, distance: .infinity)

    private init(duration: FrameDuration?, distance: Double) {
        self.duration = duration
        self.distance = distance
    }

    private init(_ wanted: FrameDuration, in ranges: [FrameRateRange], tolerance: Double) {
        self.init(nearestTo: wanted, in: ranges)
        if let duration, distance <= tolerance || duration.isWithinCameraUnit(of: wanted) { distance = 0 }
    }

    private init(nearestTo wanted: FrameDuration, in ranges: [FrameRateRange]) {
        self = .none
        for range in ranges {
            let candidate = range.nearest(to: wanted)
            let far = candidate.distance(to: wanted)
            if far < distance { (duration, distance) = (candidate, far) }
        }
    }

    private static func within(
        _ low: FrameDuration?, _ high: FrameDuration?, in ranges: [FrameRateRange], present: FrameDuration?
    ) -> Self {
        func isAllowed(_ duration: FrameDuration) -> Bool {
            low.map { $0 <= duration } ?? true && high.map { duration <= $0 } ?? true
        }
        if let present, isAllowed(present), ranges.contains(where: { $0.nearest(to: present) == present }) {
            return Self(duration: present, distance: 0)
        }
        let shortest = ranges.compactMap { range in low.map { range.shortest(from: $0) } ?? range.minFrameDuration }
        if let fastest = shortest.filter(isAllowed).min() { return Self(duration: fastest, distance: 0) }
        let ends = [low, high].compactMap { $0 }.map { Self(nearestTo: $0, in: ranges) }
        return ends.min { $0.distance < $1.distance } ?? .none
    }
}
