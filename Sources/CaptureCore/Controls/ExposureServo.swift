import Glibc

/// Brings the exposure of a camera to where a metered part of its picture is neither dark nor bright: a value that is
/// told what was metered and answers what is to be set.
///
/// The exposure time goes first, up to what the frame rate leaves; beyond that the gain. What light makes of a pixel's
/// value differs from camera to camera (linear, or some gamma), so each step goes by a mean of these, and the next one
/// mends the rest.
public struct ExposureServo: Sendable {
    /// What may be set.
    public struct Bounds: Hashable, Sendable {
        /// In units of the exposure control; the upper one no longer than a frame lasts.
        public var time: ClosedRange<Int64>
        public var timeStep: Int64
        /// nil: there is none.
        public var gain: ClosedRange<Int64>?
        public var gainStep: Int64

        /// - Parameter longest: the exposure that the frame rate leaves room for, in the control's units; nil: any.
        public init(time: CaptureControl, gain: CaptureControl?, longest: Int64? = nil) {
            // An exposure of no time has no double.
            let least = Self.sane(max(time.minimum, min(1, time.maximum)))
            let most = max(least, Self.sane(min(time.maximum, longest ?? time.maximum)))
            self.time = least...most
            timeStep = max(1, Self.sane(time.step))
            self.gain = gain.flatMap {
                $0.minimum < $0.maximum ? Self.sane($0.minimum)...Self.sane($0.maximum) : nil
            }
            gainStep = max(1, Self.sane(gain?.step ?? 1))
        }

        // What no driver means leaves room to count with.
        static func sane(_ number: Int64) -> Int64 { min(max(number, -1 << 40), 1 << 40) }
    }

    public struct Setting: Hashable, Sendable {
        public var time: Int64
        /// nil: there is none, or it isn't known.
        public var gain: Int64?

        public init(time: Int64, gain: Int64? = nil) {
            self.time = Bounds.sane(time)
            self.gain = gain.map(Bounds.sane)
        }
    }

    public enum Verdict: Hashable, Sendable {
        /// It is as it should be, or as near as the camera can come.
        case settled
        case set(Setting)
        /// Off, but perhaps for a moment only: the next picture decides.
        case wait
    }

    public let bounds: Bounds
    /// What the metered part is brought to: 0 (black) to 255.
    public let target: Double
    private var steps = 0
    private var strays = 0
    /// The direction of the last step: +1 brighter, -1 darker.
    private var direction = 0
    /// How much of what is missing a step makes up for: less each time it has gone too far.
    private var share = 1.0
    private var isSettled: Bool
    /// What was missing where it settled: a camera of coarse steps comes no nearer.
    private var rest = 0.0
    /// What was set before the last step, and what was missing then.
    private var before: (setting: Setting, missing: Double)?

    /// A longer time than the bound was set before, and is no more, as far as the driver's steps allow that.
    private var isBounded = false

    /// What 18 % of light are in a picture: neither dark nor bright.
    public static let middle = 118.0
    /// In doublings of the pixels' value: nearer is near enough, and farther is too far for what had settled.
    private static let (near, far) = (0.1, 0.25)
    /// Doublings of light for one of the pixels' value: between a linear camera's 1 and the 2.2 of a usual gamma.
    private static let gamma = 1.5
    /// Doublings of light in one step.
    private static let largestStep = 1.5
    /// Doublings that the whole range of a gain is taken for: it has no unit.
    private static let gainDoublings = 5.0
    /// Beyond so many it takes what there is: a scene that changes all the time has no end.
    private static let mostSteps = 24
    /// Pictures in a row that are off before what had settled is begun anew.
    private static let strayLimit = 2

    /// - Parameters:
    ///   - bias: doublings of light that the picture is to be brighter.
    ///   - isSettled: it starts as what had settled, and begins only when the picture is off for a while.
    public init(_ bounds: Bounds, bias: Double = 0, isSettled: Bool = false) {
        self.bounds = bounds
        self.isSettled = isSettled
        target = min(max(Self.middle * exp2(bias / 2.2), 8), 235)
    }

    /// - Parameter luma: the mean of the metered part, 0 to 255, of a picture that was taken with this setting.
    public mutating func take(luma: Double, at setting: Setting) -> Verdict {
        guard luma.isFinite else { return .wait }
        let missing = log2(target / min(max(luma, 1), 255))
        // A bound has become shorter than what is set: it is kept at once, and the next pictures show what that costs.
        if setting.time > bounds.time.upperBound, !isBounded {
            if isSettled { begin() }
            isBounded = true
            steps += 1
            before = nil
            return .set(Setting(time: lastStep(bounds.time, bounds.timeStep), gain: setting.gain))
        }
        if isSettled {
            let isOff = abs(missing - rest) > Self.far
            strays = isOff ? strays + 1 : 0
            guard strays >= Self.strayLimit else { return isOff ? .wait : .settled }
            // The same scene at the end of what the camera can is no reason to begin again.
            guard next(missing, setting) != nil else { return .settled }
            begin()
        }
        guard abs(missing) > Self.near, steps < Self.mostSteps, let next = next(missing, setting) else {
            end(missing)
            return .settled
        }
        // To and fro between two steps: the better one is as near as it comes.
        if let before, before.setting == next {
            let isBetter = abs(missing) <= abs(before.missing)
            end(isBetter ? missing : before.missing)
            return isBetter ? .settled : .set(next)
        }
        before = (setting, missing)
        let way = missing > 0 ? 1 : -1
        if direction != 0, way != direction { share = max(share / 2, 0.125) }
        direction = way
        steps += 1
        return .set(next)
    }

    /// Begins anew, as for another point.
    public mutating func begin() {
        (steps, strays, direction, share, isSettled, before) = (0, 0, 0, 1, false, nil)
    }

    private mutating func end(_ missing: Double) {
        begin()
        isSettled = true
        rest = missing
    }

    /// nil: the camera can't come nearer.
    private func next(_ missing: Double, _ setting: Setting) -> Setting? {
        let doublings = min(max(missing * Self.gamma, -Self.largestStep), Self.largestStep) * share
        var next = setting
        next.time = stepped(Double(setting.time), setting.time, 0, bounds.time, bounds.timeStep)
        if let gain = bounds.gain, let present = setting.gain {
            let width = Double(gain.upperBound) - Double(gain.lowerBound)
            let change = doublings * width / Self.gainDoublings
            let isGainsTurn =
                doublings > 0 ? next.time >= lastStep(bounds.time, bounds.timeStep) : present > gain.lowerBound
            if isGainsTurn {
                next.gain = stepped(Double(present) + change, present, change, gain, bounds.gainStep)
                return next == setting ? nil : next
            }
        }
        next.time = stepped(
            Double(setting.time) * exp2(doublings), setting.time, doublings, bounds.time, bounds.timeStep)
        return next == setting ? nil : next
    }

    private func lastStep(_ range: ClosedRange<Int64>, _ step: Int64) -> Int64 {
        range.upperBound - (range.upperBound - range.lowerBound) % step
    }

    /// The nearest step in the range; one step on at least where it is to go anywhere.
    private func stepped(
        _ wanted: Double, _ present: Int64, _ way: Double, _ range: ClosedRange<Int64>, _ step: Int64
    ) -> Int64 {
        let (low, high) = (Double(range.lowerBound), Double(range.upperBound))
        let steps = ((min(max(wanted, low), high) - low) / Double(step)).rounded()
        var value = range.lowerBound + min(Int64(steps), (range.upperBound - range.lowerBound) / step) * step
        if way > 0, value <= present { value = present < range.upperBound ? present + step : present }
        if way < 0, value >= present { value = present > range.lowerBound ? present - step : present }
        return range.contains(value) ? value : present
    }
}
