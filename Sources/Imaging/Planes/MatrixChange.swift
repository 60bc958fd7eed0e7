import FFmpeg

/// Brings luma and chroma of any matrix and range to those of BT.601 in full range, as JPEG has them: in fixed point,
/// off by at most one from the exact value.
struct MatrixChange {
    private static let bits: Int32 = 14
    private static let half: Int32 = 1 << (bits - 1)

    private let black: Int32
    private let luma: Int32
    /// What chroma gives to luma.
    private let lumaOfU: Int32
    private let lumaOfV: Int32
    private let uOfU: Int32
    private let uOfV: Int32
    private let vOfU: Int32
    private let vOfV: Int32

    init(from matrix: ColorMatrix, _ range: ColorRange) {
        let (from, to) = (matrix.weights, ColorMatrix.bt601.weights)
        /// Luma and chroma in BT.601 of a picture that has chroma only.
        func moved(u: Double, v: Double) -> (y: Double, u: Double, v: Double) {
            let (red, blue) = (2 * (1 - from.red) * v, 2 * (1 - from.blue) * u)
            let green = -(from.red * red + from.blue * blue) / (1 - from.red - from.blue)
            let y = to.red * red + (1 - to.red - to.blue) * green + to.blue * blue
            return (y, (blue - y) / (2 * (1 - to.blue)), (red - y) / (2 * (1 - to.red)))
        }
        let chroma = range == .full ? 1 : 255.0 / 224
        let (u, v) = (moved(u: chroma, v: 0), moved(u: 0, v: chroma))
        func fixed(_ value: Double) -> Int32 { Int32((value * Double(1 << Self.bits)).rounded()) }
        black = range == .full ? 0 : 16
        luma = fixed(range == .full ? 1 : 255.0 / 219)
        (lumaOfU, lumaOfV) = (fixed(u.y), fixed(v.y))
        (uOfU, uOfV) = (fixed(u.u), fixed(v.u))
        (vOfU, vOfV) = (fixed(u.v), fixed(v.v))
    }

    /// Changes a line of chroma.
    ///
    /// - Parameter offsets: gets what has to be added to the luma of each pixel that has this chroma.
    func chroma(
        _ u: ConstantPixels, _ v: ConstantPixels, toU: Pixels, toV: Pixels, offsets: UnsafeMutablePointer<Int32>,
        _ count: Int
    ) {
        for index in 0..<count {
            let (a, b) = (Int32(u[index]) &- 128, Int32(v[index]) &- 128)
            toU[index] = Self.byte((uOfU &* a &+ uOfV &* b &+ Self.half) &>> Self.bits &+ 128)
            toV[index] = Self.byte((vOfU &* a &+ vOfV &* b &+ Self.half) &>> Self.bits &+ 128)
            offsets[index] = lumaOfU &* a &+ lumaOfV &* b
        }
    }

    /// Changes a line of luma, in place.
    ///
    /// - Parameter across: pixels that share an offset.
    func luma(_ line: Pixels, offsets: UnsafePointer<Int32>, across: Int, _ count: Int) {
        switch across {
        case 1: luma(line, count) { offsets[$0] }
        case 2: luma(line, count) { offsets[$0 &>> 1] }
        default: luma(line, count) { offsets[$0 / across] }
        }
    }

    @inline(__always)
    private func luma(_ line: Pixels, _ count: Int, _ offset: (Int) -> Int32) {
        for index in 0..<count {
            let value = (Int32(line[index]) &- black) &* luma &+ offset(index)
            line[index] = Self.byte((value &+ Self.half) &>> Self.bits)
        }
    }

    @inline(__always)
    private static func byte(_ value: Int32) -> UInt8 { UInt8(truncatingIfNeeded: max(0, min(value, 255))) }
}
