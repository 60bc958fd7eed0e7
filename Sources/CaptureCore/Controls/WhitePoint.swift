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
    static let neutralKelvin = 6504.0
    private static let neutral = chromaticity(neutralKelvin)

    /// Beyond these a light is a colour.
    static let tints = -150.0...150.0
    /// Of a tint, for one of distance in CIE 1960's u and v: as in Adobe's DNG.
    private static let scale = 3000.0

    /// Gains of red and blue, with 1 for green.
    ///
    /// - Parameter tint: how much greener the light is, along the line of that temperature; below 0 more magenta.
    static func gains(_ kelvin: Double, tint: Double = 0) -> (red: Double, blue: Double) {
        let kelvin = min(max(kelvin, range.lowerBound), range.upperBound)
        let (point, green) = (uv(chromaticity(kelvin)), greener(kelvin))
        let light = color(xy((point.u + green.u * tint / scale, point.v + green.v * tint / scale)))
        let white = color(neutral)
        return (
            (white.red / white.green) * light.green / light.red, (white.blue / white.green) * light.green / light.blue
        )
    }

    /// The light that those gains make neutral.
    static func light(red: Double, blue: Double) -> (kelvin: Double, tint: Double)? {
        guard red > 0, blue > 0, (red / blue).isFinite else { return nil }
        let white = color(neutral)
        let point = uv(chromaticity(red: white.red / red, green: white.green, blue: white.blue / blue))
        // Along and beside the line of a temperature.
        func distance(_ kelvin: Double) -> (along: Double, beside: Double) {
            let (own, green) = (uv(chromaticity(kelvin)), greener(kelvin))
            let (u, v) = (point.u - own.u, point.v - own.v)
            return (u * green.u + v * green.v, v * green.u - u * green.v)
        }
        var (low, high) = (range.lowerBound, range.upperBound)
        for _ in 0..<24 {
            let middle = (low + high) / 2
            if distance(middle).beside > 0 { low = middle } else { high = middle }
        }
        let kelvin = (low + high) / 2
        return (kelvin, distance(kelvin).along * scale)
    }

    /// The tints that these bounds leave at a temperature, in steps of 1.
    static func tints(_ kelvin: Double, red: ClosedRange<Double>, blue: ClosedRange<Double>) -> ClosedRange<Double> {
        func last(_ end: Double) -> Double {
            let steps = stride(from: 0, through: end, by: end < 0 ? -1 : 1)
            return steps.prefix { tint in
                let gains = gains(kelvin, tint: tint)
                return red.contains(gains.red) && blue.contains(gains.blue)
            }.last ?? 0
        }
        return last(tints.lowerBound)...last(tints.upperBound)
    }

    /// Along the line of a temperature: at a right angle to Planck's locus (Krystek's formula).
    private static func greener(_ kelvin: Double) -> (u: Double, v: Double) {
        func planck(_ t: Double) -> (u: Double, v: Double) {
            (
                (0.860117757 + 1.54118254e-4 * t + 1.28641212e-7 * t * t)
                    / (1 + 8.42420235e-4 * t + 7.08145163e-7 * t * t),
                (0.317398726 + 4.22806245e-5 * t + 4.20481691e-8 * t * t)
                    / (1 - 2.89741816e-5 * t + 1.61456053e-7 * t * t)
            )
        }
        let (low, high) = (planck(kelvin * 0.999), planck(kelvin * 1.001))
        let (u, v) = (high.u - low.u, high.v - low.v)
        let length = (u * u + v * v).squareRoot()
        return (v / length, -u / length)
    }

    // CIE 1960, where the lines of temperatures are at a right angle to Planck's locus.
    private static func uv(_ point: (x: Double, y: Double)) -> (u: Double, v: Double) {
        let sum = -2 * point.x + 12 * point.y + 3
        return (4 * point.x / sum, 6 * point.y / sum)
    }

    private static func xy(_ point: (u: Double, v: Double)) -> (x: Double, y: Double) {
        let sum = 2 * point.u - 8 * point.v + 4
        return (3 * point.u / sum, 2 * point.v / sum)
    }

    // Of linear sRGB.
    private static func chromaticity(red: Double, green: Double, blue: Double) -> (x: Double, y: Double) {
        let x = 0.4124564 * red + 0.3575761 * green + 0.1804375 * blue
        let y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
        let z = 0.0193339 * red + 0.1191920 * green + 0.9503041 * blue
        return (x / (x + y + z), y / (x + y + z))
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
