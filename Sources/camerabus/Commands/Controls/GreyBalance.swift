import Glibc

/// Brings a camera's gains to where a grey card is grey in its pictures, from one measurement to the next.
///
/// What a gain makes of a pixel's value differs from camera to camera (a gamma, a matrix), so each step goes by what
/// the one before has done.
struct GreyBalance {
    struct Gains: Hashable {
        var red: Double
        var blue: Double
    }

    enum Verdict {
        /// The card is grey.
        case grey
        /// These are to be set, and the card measured again.
        case set(Gains)
        /// The camera comes no nearer.
        case exhausted
    }

    private struct Channel {
        let most: Double
        var gain: Double
        /// What one doubling of the gain has made of the pixels, in doublings.
        var response = 1.0
        /// The gain before, and what was missing then, in doublings.
        var before: (gain: Double, missing: Double)?

        mutating func take(missing: Double) {
            if let before, before.gain != gain {
                let response = (before.missing - missing) / log2(gain / before.gain)
                self.response = min(max(response, 0.2), 2)
            }
            before = (gain, missing)
            let step = min(max(missing / response, -2), 2)
            gain = min(max(gain * exp2(step), GreyBalance.least), most)
        }
    }

    private var red: Channel
    private var blue: Channel
    private var steps = 0

    /// No camera's gain is as small.
    private static let least = 0.05
    /// Doublings of a pixel's value: what differs by less is grey.
    private static let near = 0.03
    private static let mostSteps = 12

    init(_ gains: Gains, most: Gains) {
        red = Channel(most: most.red, gain: max(gains.red, Self.least))
        blue = Channel(most: most.blue, gain: max(gains.blue, Self.least))
    }

    var gains: Gains { Gains(red: red.gain, blue: blue.gain) }

    /// - Parameters:
    ///   - card: measured with the given gains.
    ///   - given: the gains that the camera has.
    mutating func take(_ card: GreyCard, with given: Gains) -> Verdict {
        (red.gain, blue.gain) = (max(given.red, Self.least), max(given.blue, Self.least))
        let green = max(card.green, 1)
        let missing = (red: log2(green / max(card.red, 1)), blue: log2(green / max(card.blue, 1)))
        if abs(missing.red) < Self.near, abs(missing.blue) < Self.near { return .grey }
        guard steps < Self.mostSteps else { return .exhausted }
        let before = gains
        red.take(missing: missing.red)
        blue.take(missing: missing.blue)
        steps += 1
        return gains == before ? .exhausted : .set(gains)
    }
}
