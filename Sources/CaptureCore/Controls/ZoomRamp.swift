import Glibc

/// How a zoom factor goes from one to another at so many doublings a second: AVFoundation's
/// `ramp(toVideoZoomFactor:withRate:)`.
public struct ZoomRamp: Hashable, Sendable {
    public let from: Double
    public let to: Double
    /// Doublings a second, above 0.
    public let rate: Double
    /// When it began.
    public let start: Instant

    /// Factors are at least 1.
    public init(from: Double, to: Double, rate: Double, start: Instant) {
        self.from = max(1, from)
        self.to = max(1, to)
        self.rate = rate
        self.start = start
    }

    /// Nanoseconds that it lasts: as many seconds as there are doublings for each of the rate's.
    public var duration: Int64 {
        let seconds = abs(log2(to / from)) / rate
        // A day is for ever.
        return seconds.isFinite ? Int64(min(seconds, 86_400) * 1_000_000_000) : 86_400_000_000_000
    }

    public func isOver(at time: Instant) -> Bool { time - start >= duration }

    /// The factor at a time: that of the beginning before, that of the end after.
    public func factor(at time: Instant) -> Double {
        let elapsed = time - start
        if elapsed <= 0 { return from }
        if elapsed >= duration { return to }
        let doublings = rate * Double(elapsed) / 1_000_000_000
        return to >= from ? min(from * exp2(doublings), to) : max(from * exp2(-doublings), to)
    }
}

/// What a zoom ramp is asked for (`device.zoomRamp`).
public struct ZoomRequest: Hashable, Sendable {
    public enum Target: Hashable, Sendable {
        case factor(Double)
        /// 0 to 1, as `zoomValue`.
        case value(Double)
    }

    public var target: Target
    /// Doublings a second.
    public var rate: Double

    public init(target: Target, rate: Double) {
        self.target = target
        self.rate = rate
    }

    /// The factor that it means on one camera.
    public func factor(_ map: CameraControlMap) -> Double {
        switch target {
        case .factor(let factor): factor
        case .value(let value): map.zoomFactor(ofValue: value)
        }
    }
}
