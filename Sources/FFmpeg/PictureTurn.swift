import CFFmpeg

/// How pictures are to be turned to be upright, as a movie's track says it: by a matrix that is applied when they are
/// shown.
public struct PictureTurn: Hashable, Sendable {
    /// Clockwise, 0–3.
    public var quarters: Int
    /// Left and right are to be exchanged then.
    public var isMirrored: Bool

    public static let none = PictureTurn(quarters: 0, isMirrored: false)

    public init(quarters: Int, isMirrored: Bool) {
        self.quarters = quarters
        self.isMirrored = isMirrored
    }

    init(of stream: UnsafeMutablePointer<AVStream>) {
        self = .none
        var bytes = 0
        guard let data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &bytes),
            bytes >= 9 * MemoryLayout<Int32>.size
        else { return }
        let matrix = UnsafeRawPointer(data)
        func number(_ index: Int) -> Double {
            Double(matrix.loadUnaligned(fromByteOffset: index * MemoryLayout<Int32>.size, as: Int32.self)) / 65536
        }
        self.init(number(0), number(1), number(3), number(4))
    }

    /// Of the part of the matrix that turns: x becomes a·x + c·y, and y becomes b·x + d·y. A matrix that does something
    /// else, such as a turn by ten degrees, counts as none.
    private init(_ a: Double, _ b: Double, _ c: Double, _ d: Double) {
        isMirrored = a * d - b * c < 0
        // Before left and right are exchanged.
        let across = isMirrored ? -a : a
        let (large, small) = (max(abs(across), abs(b)), min(abs(across), abs(b)))
        guard large > 0, small < large * 0.02 else {
            self = .none
            return
        }
        quarters = abs(across) > abs(b) ? (across > 0 ? 0 : 2) : (b > 0 ? 1 : 3)
    }
}
