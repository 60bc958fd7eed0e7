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
        self.init(matrix: UnsafeRawPointer(data))
    }

    /// What a decoded picture says of itself; nil: nothing.
    init?(of frame: UnsafeMutablePointer<AVFrame>) {
        guard let data = av_frame_get_side_data(frame, AV_FRAME_DATA_DISPLAYMATRIX)?.pointee,
            data.size >= 9 * MemoryLayout<Int32>.size, let matrix = data.data
        else { return nil }
        self.init(matrix: UnsafeRawPointer(matrix))
    }

    private init(matrix: UnsafeRawPointer) {
        func number(_ index: Int) -> Double {
            Double(matrix.loadUnaligned(fromByteOffset: index * MemoryLayout<Int32>.size, as: Int32.self)) / 65536
        }
        self.init(number(0), number(1), number(3), number(4))
    }

    /// Puts it into a track that is to be written. MP4 and MOV have a place for it.
    ///
    /// - Parameters:
    ///   - width: of the pictures as they are stored.
    ///   - height: likewise.
    func write(to stream: UnsafeMutablePointer<AVStream>, width: Int, height: Int) throws(MediaError) {
        guard self != .none else { return }
        let bytes = 9 * MemoryLayout<Int32>.size
        guard let data = av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, bytes) else {
            throw MediaError("av_stream_new_side_data", cffmpeg_no_memory())
        }
        var (a, b, c, d): (Int, Int, Int, Int)
        switch quarters {
        case 1: (a, b, c, d) = (0, 1, -1, 0)
        case 2: (a, b, c, d) = (-1, 0, 0, -1)
        case 3: (a, b, c, d) = (0, -1, 1, 0)
        default: (a, b, c, d) = (1, 0, 0, 1)
        }
        if isMirrored { (a, c) = (-a, -c) }
        // The picture's corner stays at the origin.
        let x = max(0, -a * width) + max(0, -c * height)
        let y = max(0, -b * width) + max(0, -d * height)
        let one = 1 << 16
        let matrix = [a * one, b * one, 0, c * one, d * one, 0, x * one, y * one, 1 << 30]
        for (index, value) in matrix.enumerated() {
            UnsafeMutableRawPointer(data).storeBytes(
                of: Int32(clamping: value), toByteOffset: index * MemoryLayout<Int32>.size, as: Int32.self)
        }
    }

    /// Copies it from one track to another, which is to be written.
    static func copy(
        from stream: UnsafeMutablePointer<AVStream>, to copy: UnsafeMutablePointer<AVStream>
    ) throws(MediaError) {
        let size = stream.pointee.codecpar.pointee
        try PictureTurn(of: stream).write(to: copy, width: Int(size.width), height: Int(size.height))
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
