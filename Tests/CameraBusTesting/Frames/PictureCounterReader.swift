public import CaptureCore
import TurboJPEG

/// What a virtual camera's picture says of itself.
public struct PictureCounter: Hashable, Sendable {
    /// `captureSequence` modulo 2³².
    public var counter: UInt32
    /// CLOCK_MONOTONIC at the start of the frame, microseconds.
    public var microseconds: UInt64
    /// The camera's number from 0.
    public var camera: UInt8

    public init(counter: UInt32, microseconds: UInt64, camera: UInt8) {
        self.counter = counter
        self.microseconds = microseconds
        self.camera = camera
    }
}

/// Reads the machine-readable band of a virtual camera's picture, at any scale.
///
/// The band is 32 cells wide, over the whole width, and 4 high, each 1/24 of the height, at the top. The cells are the
/// bits, highest first and white for 1, of 16 bytes: 0xB2; counter, 4 bytes; microseconds, 8; camera, 1; CRC-16 (CCITT,
/// from 0xFFFF) of these 13, 2 bytes; all big-endian.
public enum PictureCounterReader {
    /// From a payload: JPEG, or any format with luma or something like it (grey, Bayer, BGR, RGB, YUYV, NV12, I420).
    /// nil for another format, one that is too short, or a band that can't be read.
    public static func read(_ payload: UnsafeRawBufferPointer, _ layout: FrameLayout) -> PictureCounter? {
        guard let plane = layout.planes.first else { return nil }
        let size = layout.dimensions
        if layout.pixelFormat == .jpeg || layout.pixelFormat == .motionJPEG { return read(jpeg: payload) }
        if let samples = layout.pixelFormat.rawSamples { return read(payload, plane, size, samples) }
        let step: Int
        var first = 0
        switch layout.pixelFormat {
        case .yuyv: step = 2
        case .uyvy: (step, first) = (2, 1)
        // Green, which is in the middle.
        case .bgr24, .rgb24: (step, first) = (3, 1)
        case .rgb48: (step, first) = (6, 3)
        case .nv12, .i420: step = 1
        default: return nil
        }
        guard size.width > 0, size.height > 0, plane.offset >= 0, plane.stride >= size.width * step,
            plane.offset + plane.stride * (size.height - 1) + size.width * step <= payload.count
        else { return nil }
        return read(size) { x, y in payload[plane.offset + y * plane.stride + x * step + first] }
    }

    /// The upper eight bits of each sample.
    private static func read(
        _ payload: UnsafeRawBufferPointer, _ plane: PlaneLayout, _ size: Dimensions, _ samples: RawSamples
    ) -> PictureCounter? {
        let (group, groupBytes, bits) = (samples.groupPixels, samples.groupBytes, samples.bits)
        let lineBytes = samples.lineBytes(width: size.width)
        guard size.width > 0, size.height > 0, plane.offset >= 0, plane.stride >= lineBytes,
            plane.offset + plane.stride * (size.height - 1) + lineBytes <= payload.count
        else { return nil }
        return read(size) { x, y in
            let at = plane.offset + y * plane.stride + x / group * groupBytes
            switch samples.packing {
            case .bytes, .mipi: return payload[at + x % group]
            case .words: return UInt8(truncatingIfNeeded: (Int(payload[at + 1]) << 8 | Int(payload[at])) >> (bits - 8))
            case .swappedWords:
                return UInt8(truncatingIfNeeded: (Int(payload[at]) << 8 | Int(payload[at + 1])) >> (bits - 8))
            }
        }
    }

    public static func read(_ payload: [UInt8], _ layout: FrameLayout) -> PictureCounter? {
        payload.withUnsafeBytes { read($0, layout) }
    }

    /// From a JPEG picture.
    public static func read(jpeg: UnsafeRawBufferPointer) -> PictureCounter? {
        guard let decompressor = try? JPEGDecompressor(), let header = try? decompressor.header(jpeg) else {
            return nil
        }
        let size = Dimensions(width: header.width, height: header.height)
        var luma = [UInt8](repeating: 0, count: size.area)
        let isWhole = luma.withUnsafeMutableBytes { bytes in
            (try? decompressor.decompress(jpeg, header: header, format: .gray, stride: size.width, to: bytes))
                == .some(nil)
        }
        return isWhole ? read(size) { x, y in luma[y * size.width + x] } : nil
    }

    private static func read(_ size: Dimensions, _ pixel: (Int, Int) -> UInt8) -> PictureCounter? {
        // The mean of the middle of each cell: scaling and compression blur the edges.
        func level(_ column: Int, _ row: Int) -> Int {
            func middle(_ cell: Int, _ cells: Int, _ length: Int) -> ClosedRange<Int> {
                let (low, high) = ((4 * cell + 1) * length / (4 * cells), ((4 * cell + 3) * length - 1) / (4 * cells))
                let first = min(low, length - 1)
                return first...min(max(first, high), length - 1)
            }
            let (columns, rows) = (middle(column, 32, size.width), middle(row, 24, size.height))
            var sum = 0
            for y in rows { for x in columns { sum += Int(pixel(x, y)) } }
            return sum / (columns.count * rows.count)
        }
        // 0xB2 is 10110010: black and white as this picture has them.
        let white = (level(0, 0) + level(2, 0) + level(3, 0) + level(6, 0)) / 4
        let black = (level(1, 0) + level(4, 0) + level(5, 0) + level(7, 0)) / 4
        guard white - black >= 40 else { return nil }
        var bytes: [UInt8] = []
        for cell in stride(from: 0, to: 128, by: 8) {
            var byte: UInt8 = 0
            for bit in cell..<cell + 8 { byte = byte << 1 | (2 * level(bit % 32, bit / 32) > white + black ? 1 : 0) }
            bytes.append(byte)
        }
        var crc: UInt16 = 0xFFFF
        for byte in bytes[1..<14] {
            crc ^= UInt16(byte) << 8
            for _ in 0..<8 { crc = crc & 0x8000 != 0 ? (crc << 1) ^ 0x1021 : crc << 1 }
        }
        guard bytes[0] == 0xB2, bytes[14] == UInt8(crc >> 8), bytes[15] == UInt8(crc & 0xFF) else { return nil }
        return PictureCounter(
            counter: bytes[1..<5].reduce(0) { $0 << 8 | UInt32($1) },
            microseconds: bytes[5..<13].reduce(0) { $0 << 8 | UInt64($1) }, camera: bytes[13])
    }
}
