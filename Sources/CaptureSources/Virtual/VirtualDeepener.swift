import CaptureCore

/// Makes raw pictures of more than 8 bits a sample of those of 8 that a virtual camera draws, with samples that mean
/// the same light.
struct VirtualDeepener {
    private let samples: RawSamples
    /// The samples of 8 bits in more.
    private let values: [UInt16]

    /// What has to be drawn; nil for formats that aren't made here.
    static func source(of pixelFormat: PixelFormat) -> PixelFormat? {
        guard let samples = pixelFormat.rawSamples, samples.packing == .words || samples.packing == .mipi else {
            return nil
        }
        return switch samples.pattern {
        case .rggb: .bayerRGGB8
        case .grey: .grey
        default: nil
        }
    }

    init?(_ pixelFormat: PixelFormat) {
        guard Self.source(of: pixelFormat) != nil, let samples = pixelFormat.rawSamples else { return nil }
        self.samples = samples
        values = (0..<256).map { UInt16(($0 * samples.largest + 127) / 255) }
    }

    /// - Returns: the picture's bytes; nil if there is no room for it.
    func encode(_ picture: VirtualBackground, into room: UnsafeMutableRawBufferPointer) -> Int? {
        let size = picture.layout.dimensions
        let lineBytes = samples.lineBytes(width: size.width)
        guard let base = room.baseAddress, lineBytes * size.height <= room.count else { return nil }
        for line in 0..<size.height {
            let source = UnsafeRawPointer(picture.base + line * picture.layout.planes[0].stride)
            let target = base + line * lineBytes
            if samples.packing == .mipi {
                pack(source, size.width, target)
            } else {
                let words = target.assumingMemoryBound(to: UInt16.self)
                for column in 0..<size.width { words[column] = value(source, column).littleEndian }
            }
        }
        return lineBytes * size.height
    }

    private func value(_ source: UnsafeRawPointer, _ column: Int) -> UInt16 {
        values[Int(source.load(fromByteOffset: column, as: UInt8.self))]
    }

    /// As MIPI CSI-2 has them: the upper 8 bits of each pixel of a group, then their lower bits one after the other,
    /// lowest first.
    private func pack(_ source: UnsafeRawPointer, _ width: Int, _ target: UnsafeMutableRawPointer) {
        let (pixels, bytes, lowerBits) = (samples.groupPixels, samples.groupBytes, samples.bits - 8)
        let groups = target.assumingMemoryBound(to: UInt8.self)
        for first in stride(from: 0, to: width, by: pixels) {
            let group = groups + first / pixels * bytes
            var rest: UInt32 = 0
            for place in 0..<pixels {
                let sample = first + place < width ? UInt32(value(source, first + place)) : 0
                group[place] = UInt8(truncatingIfNeeded: sample >> UInt32(lowerBits))
                rest |= (sample & (1 << UInt32(lowerBits) - 1)) << UInt32(place * lowerBits)
            }
            for index in pixels..<bytes {
                group[index] = UInt8(truncatingIfNeeded: rest >> UInt32(8 * (index - pixels)))
            }
        }
    }
}
