import Glibc

/// The white of light of a temperature, as gains that make it neutral: for cameras whose drivers have gains and no
/// temperature.
///
/// The driver's default gains are taken for those of daylight of 6504 K, the white of sRGB; which light they are for
/// indeed, no driver says. So the temperature is the photographer's scale, and no measurement of the light.
struct WhitePoint {
    /// Where the formulas hold, in kelvin.
    static let range = 2500.0...12_000.0

    /// That of sRGB.
    private static let neutral = chromaticity(6504)

    /// Gains of red and blue, with 1 for green.
    static func gains(_ kelvin: Double) -> (red: Double, blue: Double) {
        let light = color(chromaticity(min(max(kelvin, range.lowerBound), range.upperBound)))
        let white = color(neutral)
        return (
            (white.red / white.green) * light.green / light.red, (white.blue / white.green) * light.green / light.blue
        )
    }

    /// The temperature of the light for which red and blue have that ratio.
    static func kelvin(red: Double, blue: Double) -> Double? {
        guard red > 0, blue > 0, (red / blue).isFinite else { return nil }
        var (low, high) = (range.lowerBound, range.upperBound)
        // The ratio rises with the temperature.
        for _ in 0..<24 {
            let middle = (low + high) / 2
            let gains = gains(middle)
            if gains.red / gains.blue < red / blue { low = middle } else { high = middle }
        }
        return (low + high) / 2
    }

    // Of daylight (CIE 15); below 4000 K of a black body (Kim et al., cubic splines), which is shifted to meet it.
    private static func chromaticity(_ kelvin: Double) -> (x: Double, y: Double) {
        guard kelvin < 4000 else { return daylight(kelvin) }
        let (here, there, daylight) = (blackBody(kelvin), blackBody(4000), daylight(4000))
        return (here.x + daylight.x - there.x, here.y + daylight.y - there.y)
    }

    private static func daylight(_ kelvin: Double) -> (x: Double, y: Double) {
        let t = 1000 / kelvin
        let x =
            kelvin <= 7000
            ? 0.244063 + 0.09911 * t + 2.9678 * t * t - 4.6070 * t * t * t
            : 0.237040 + 0.24748 * t + 1.9018 * t * t - 2.0064 * t * t * t
        return (x, -3 * x * x + 2.87 * x - 0.275)
    }

    private static func blackBody(_ kelvin: Double) -> (x: Double, y: Double) {
        let t = 1000 / kelvin
        let x = -0.2661239 * t * t * t - 0.2343589 * t * t + 0.8776956 * t + 0.179910
        return (x, -0.9549476 * x * x * x - 1.37418593 * x * x + 2.09137015 * x - 0.16748867)
    }

    /// The temperatures whose gains lie within these bounds; nil: none does.
    static func temperatures(red: ClosedRange<Double>, blue: ClosedRange<Double>) -> ClosedRange<Double>? {
        let reached = stride(from: range.lowerBound, through: range.upperBound, by: 50).filter { kelvin in
            let gains = gains(kelvin)
            return red.contains(gains.red) && blue.contains(gains.blue)
        }
        guard let least = reached.first, let most = reached.last, least < most else { return nil }
        return least...most
    }

    // In linear sRGB.
    private static func color(_ point: (x: Double, y: Double)) -> (red: Double, green: Double, blue: Double) {
        let (x, z) = (point.x / point.y, (1 - point.x - point.y) / point.y)
        return (
            max(3.2404542 * x - 1.5371385 - 0.4985314 * z, 0.01), max(-0.9692660 * x + 1.8760108 + 0.0415560 * z, 0.01),
            max(0.0556434 * x - 0.2040259 + 1.0572252 * z, 0.01)
        )
    }
}
