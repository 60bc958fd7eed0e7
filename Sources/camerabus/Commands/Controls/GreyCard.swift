import BusClient
import BusProtocol
import Glibc

/// The mean colour of a picture around a point.
struct GreyCard: Hashable {
    var red: Double
    var green: Double
    var blue: Double

    /// Of the picture's width and height.
    private static let side = 0.1
    /// A pixel that is as bright or as dark says nothing of the light's colour.
    private static let usable = 20.0...245.0

    /// Its colour says something of the light's.
    var isUsable: Bool { [red, green, blue].allSatisfy(Self.usable.contains) }

    /// - Parameter frame: of the rendition `rgb`.
    /// - Returns: nil: the frame has other pixels than that.
    init?(around point: PreviewLayout.Point, of frame: Frame) {
        let header = frame.header
        guard header.format == "RGB3", let plane = header.planes.first, header.width > 0, header.height > 0,
            plane.stride >= header.width * 3
        else { return nil }
        let columns = Self.pixels(around: point.x, of: header.width)
        let rows = Self.pixels(around: point.y, of: header.height)
        let sums = frame.payload.withUnsafeBytes { bytes -> [Int]? in
            var sums = [0, 0, 0]
            for row in rows {
                for column in columns {
                    let start = plane.offset + row * plane.stride + column * 3
                    guard start >= 0, start + 3 <= bytes.count else { return nil }
                    for channel in 0..<3 { sums[channel] += Int(bytes[start + channel]) }
                }
            }
            return sums
        }
        guard let sums else { return nil }
        let count = Double(rows.count * columns.count)
        (red, green, blue) = (Double(sums[0]) / count, Double(sums[1]) / count, Double(sums[2]) / count)
    }

    init(red: Double, green: Double, blue: Double) { (self.red, self.green, self.blue) = (red, green, blue) }

    private static func pixels(around share: Double, of length: Int) -> Range<Int> {
        let middle = min(max(Int(share * Double(length)), 0), length - 1)
        let half = max(1, Int(Double(length) * side / 2))
        return max(0, middle - half)..<min(length, middle + half)
    }
}

/// Brings a camera's gains to where a grey card is grey in its pictures, from one measurement to the next.
///
/// What a gain makes of a pixel's value differs from camera to camera (a gamma, a matrix), so each step goes by what
/// the one before has done.
struct GreyBalance: Hashable {
    struct Gains: Hashable {
        var red: Double
        var blue: Double
    }

    enum Verdict: Hashable {
        /// The card is grey.
        case grey
        case set(Gains)
        /// The camera comes no nearer.
        case exhausted
    }

    private struct Channel: Hashable {
        let most: Double
        var gain: Double
        /// What one doubling of the gain has made of the pixels, in doublings.
        var response = 1.0
        /// The gain before, and what was missing then, in doublings.
        var before: (gain: Double, missing: Double)?

        static func == (left: Self, right: Self) -> Bool { left.gain == right.gain && left.most == right.most }
        func hash(into hasher: inout Hasher) { hasher.combine(gain) }

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
    ///   - card: as it is with these gains.
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
