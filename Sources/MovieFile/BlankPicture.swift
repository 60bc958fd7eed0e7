public import CaptureCore
import TurboJPEG

/// A black picture that stands for one that may not be shown.
public enum BlankPicture {
    /// Its bytes as a camera would give them; nil: of such pictures none can be made from nothing.
    public static func bytes(_ layout: FrameLayout) -> [UInt8]? {
        let planes = layout.planes
        func filled(_ values: [UInt8]) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: layout.totalBytes)
            for (plane, value) in zip(planes, values) {
                for index in plane.offset..<min(bytes.count, plane.offset + plane.bytes) { bytes[index] = value }
            }
            return bytes
        }
        switch layout.pixelFormat {
        case .i420: return planes.count == 3 ? filled([16, 128, 128]) : nil
        case .nv12: return planes.count == 2 ? filled([16, 128]) : nil
        case .nv12FullRange: return planes.count == 2 ? filled([0, 128]) : nil
        case .yuyv: return (0..<layout.totalBytes).map { $0 % 2 == 0 ? 16 : 128 }
        case .uyvy: return (0..<layout.totalBytes).map { $0 % 2 == 0 ? 128 : 16 }
        case .motionJPEG, .jpeg: return jpeg(layout.dimensions)
        case .bgr24, .rgb24: return filled([0])
        default: return layout.pixelFormat.rawSamples == nil ? nil : filled([0])
        }
    }

    private static func jpeg(_ size: Dimensions) -> [UInt8]? {
        let pixels = [UInt8](repeating: 0, count: size.width * size.height)
        let most = JPEGCompressor.maximumBytes(width: size.width, height: size.height, subsampling: .s422)
        // With its colours, so that it is of the same kind as a camera's.
        let colours = [UInt8](repeating: 128, count: (size.width + 1) / 2 * size.height)
        return try? pixels.withUnsafeBytes { luma in
            try colours.withUnsafeBytes { chroma in
                guard let y = luma.baseAddress, let c = chroma.baseAddress else { return nil }
                let planes = YUVPlanes(
                    y: UnsafeMutableRawPointer(mutating: y), yStride: size.width,
                    u: UnsafeMutableRawPointer(mutating: c), uStride: (size.width + 1) / 2,
                    v: UnsafeMutableRawPointer(mutating: c), vStride: (size.width + 1) / 2)
                return try [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
                    count = try JPEGCompressor().compress(
                        planes, width: size.width, height: size.height, subsampling: .s422, quality: 90,
                        into: UnsafeMutableRawBufferPointer(buffer))
                }
            }
        }
    }
}
