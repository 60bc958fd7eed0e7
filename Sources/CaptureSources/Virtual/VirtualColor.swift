/// A pixel in full-range BT.601, 0–255.
struct VirtualColor: Hashable {
    var y: Double
    var u: Double
    var v: Double

    init(y: Double, u: Double = 128, v: Double = 128) { (self.y, self.u, self.v) = (y, u, v) }

    init(r: Double, g: Double, b: Double) {
        y = 0.299 * r + 0.587 * g + 0.114 * b
        u = (b - y) / 1.772 + 128
        v = (r - y) / 1.402 + 128
    }

    var rgb: (r: UInt8, g: UInt8, b: UInt8) {
        (
            Self.byte(y + 1.402 * (v - 128)), Self.byte(y - 0.344136 * (u - 128) - 0.714136 * (v - 128)),
            Self.byte(y + 1.772 * (u - 128))
        )
    }

    var limited: (y: UInt8, u: UInt8, v: UInt8) {
        (
            Self.byte(16 + min(max(y, 0), 255) * 219 / 255), Self.byte(128 + (u - 128) * 224 / 255),
            Self.byte(128 + (v - 128) * 224 / 255)
        )
    }

    var full: (y: UInt8, u: UInt8, v: UInt8) { (Self.byte(y), Self.byte(u), Self.byte(v)) }

    static func byte(_ value: Double) -> UInt8 { UInt8(min(255, max(0, value.rounded()))) }
}
