import BusClient
import BusProtocol

/// The mean colour of a picture around a point.
struct GreyCard {
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
