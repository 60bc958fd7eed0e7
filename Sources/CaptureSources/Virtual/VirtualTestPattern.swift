/// The test pattern of a virtual camera's picture; the raw value is that of its control.
enum VirtualTestPattern: Int64 {
    case bars, gradient, black, white, checkerboard

    private static let barColors: [VirtualColor] = [
        VirtualColor(r: 191, g: 191, b: 191), VirtualColor(r: 191, g: 191, b: 0), VirtualColor(r: 0, g: 191, b: 191),
        VirtualColor(r: 0, g: 191, b: 0), VirtualColor(r: 191, g: 0, b: 191), VirtualColor(r: 191, g: 0, b: 0),
        VirtualColor(r: 0, g: 0, b: 191), VirtualColor(r: 32, g: 32, b: 32),
    ]

    /// The colour of a point in the pattern's line of that kind.
    ///
    /// - Parameter x: 0 at the left end, 1 at the right.
    func color(_ x: Double, _ kind: Int) -> VirtualColor {
        switch self {
        case .bars: Self.barColors[min(max(Int(x * 8), 0), 7)]
        case .gradient: VirtualColor(y: 255 * x)
        case .black: VirtualColor(y: 0)
        case .white: VirtualColor(y: 255)
        case .checkerboard: VirtualColor(y: (Int(max(x, 0) * 16) + kind) % 2 == 0 ? 220 : 35)
        }
    }

    /// The luma of a point before exposure; `x` and `y` from 0 to 1 over the whole picture.
    func luma(x: Double, y: Double) -> Double {
        switch self {
        case .bars: Self.barColors[min(max(Int(x * 8), 0), 7)].y
        case .gradient: 255 * min(max(x, 0), 1)
        case .black: 0
        case .white: 255
        case .checkerboard: 128
        }
    }
}
