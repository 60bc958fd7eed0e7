import CaptureCore
import Glibc

/// Where the parts of a virtual camera's picture lie, top to bottom: the machine-readable band, the digits, the
/// pattern, and the lane of the moving box. All in 24ths of the height, so that they keep their place in a picture of
/// any scale.
struct VirtualSections {
    let size: Dimensions
    var bandBottom: Int { size.height * 4 / 24 }
    var digitsBottom: Int { size.height * 7 / 24 }
    var patternBottom: Int { size.height * 20 / 24 }

    /// A line that the camera draws many times.
    enum Line: Hashable {
        case band, digits, lane
        /// One of the pattern's kinds of line.
        case pattern(Int)
    }

    /// - Parameter y: of the picture before flips.
    func line(_ y: Int) -> Line {
        if y < bandBottom { return .band }
        if y < digitsBottom { return .digits }
        if y >= patternBottom { return .lane }
        return .pattern((y - digitsBottom) * 4 / max(1, patternBottom - digitsBottom) % 2)
    }

    /// Where a line of the picture comes to lie. The band is never turned.
    func physical(_ y: Int, isUpsideDown: Bool) -> Int {
        isUpsideDown && y >= bandBottom ? bandBottom + size.height - 1 - y : y
    }
}

/// Makes the still lines of the picture.
struct VirtualPattern {
    let sections: VirtualSections
    let look: VirtualLook

    /// Grey behind the digits.
    static let digitsBackground = 40.0

    /// A line's pixels, mirrored if the picture is.
    func colors(_ line: VirtualSections.Line) -> [VirtualColor] {
        let width = sections.size.width
        var colors: [VirtualColor]
        switch line {
        case .band: return Array(repeating: VirtualColor(y: 0), count: width)
        case .digits: return Array(repeating: VirtualColor(y: Self.digitsBackground), count: width)
        case .lane:
            // Colourless whatever the controls, so that the box need not care for chroma.
            colors = (0..<width).map { VirtualColor(y: luma(64 + 128 * Double($0) / Double(width))) }
        case .pattern(let kind):
            colors = (0..<width).map { x in
                let middle = Double(width) / 2
                return adjusted(look.pattern.color((middle + (Double(x) - middle) / look.zoom) / Double(width), kind))
            }
            smear(&colors)
        }
        if look.isMirrored { colors.reverse() }
        return colors
    }

    private func luma(_ y: Double) -> Double {
        min(max((y * look.exposure - 128) * look.contrast + 128 + look.brightness, 0), 255)
    }

    private func adjusted(_ color: VirtualColor) -> VirtualColor {
        let angle = look.hue * .pi / 180
        let (u, v) = ((color.u - 128) * look.saturation, (color.v - 128) * look.saturation)
        return VirtualColor(
            y: luma(color.y), u: min(max(128 + u * cos(angle) - v * sin(angle) - look.warmth + look.blue, 0), 255),
            v: min(max(128 + u * sin(angle) + v * cos(angle) + look.warmth + look.red, 0), 255))
    }

    /// What is out of focus: the mean of a pixel and its neighbours left and right.
    private func smear(_ colors: inout [VirtualColor]) {
        let radius = Int(look.blur * Double(colors.count) / 1000)
        guard radius > 0 else { return }
        let sharp = colors
        var sum = VirtualColor(y: 0, u: 0, v: 0)
        func add(_ index: Int, _ sign: Double) {
            let color = sharp[min(max(index, 0), sharp.count - 1)]
            sum.y += sign * color.y
            sum.u += sign * color.u
            sum.v += sign * color.v
        }
        for index in -radius...radius { add(index, 1) }
        let count = Double(2 * radius + 1)
        for index in colors.indices {
            colors[index] = VirtualColor(y: sum.y / count, u: sum.u / count, v: sum.v / count)
            add(index + radius + 1, 1)
            add(index - radius, -1)
        }
    }
}
