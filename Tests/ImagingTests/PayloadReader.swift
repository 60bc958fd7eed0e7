import CaptureCore
import Imaging
import Testing
import TurboJPEG

/// Reads single pixels out of what was made, in plain arithmetic.
struct PayloadReader {
    private let bytes: [UInt8]
    private let layout: FrameLayout
    let size: Dimensions

    init(_ picture: UnsafeRawBufferPointer, _ layout: FrameLayout) throws {
        guard layout.pixelFormat == .jpeg else {
            #expect(picture.count == layout.totalBytes)
            (bytes, self.layout, size) = (Array(picture), layout, layout.dimensions)
            return
        }
        let decompressor = try JPEGDecompressor()
        let header = try decompressor.header(picture)
        size = Dimensions(width: header.width, height: header.height)
        #expect(size == layout.dimensions)
        var pixels = [UInt8](repeating: 0, count: size.area * 3)
        let warning = try pixels.withUnsafeMutableBytes {
            try decompressor.decompress(picture, header: header, format: .rgb, stride: header.width * 3, to: $0)
        }
        #expect(warning == nil)
        bytes = pixels
        self.layout = try #require(FrameLayout.packed(.rgb24, size))
    }

    func color(_ x: Int, _ y: Int) -> Color {
        func at(_ plane: Int, _ column: Int, _ row: Int) -> Double {
            Double(bytes[layout.planes[plane].offset + row * layout.planes[plane].stride + column])
        }
        switch layout.pixelFormat {
        case .rgb24: return Color(at(0, x * 3, y), at(0, x * 3 + 1, y), at(0, x * 3 + 2, y))
        case .bgr24: return Color(at(0, x * 3 + 2, y), at(0, x * 3 + 1, y), at(0, x * 3, y))
        case .grey: return Color(at(0, x, y), at(0, x, y), at(0, x, y))
        case .yuyv: return Color(limitedY: at(0, x * 2, y), u: at(0, x / 2 * 4 + 1, y), v: at(0, x / 2 * 4 + 3, y))
        case .nv12: return Color(limitedY: at(0, x, y), u: at(1, x / 2 * 2, y / 2), v: at(1, x / 2 * 2 + 1, y / 2))
        default: return Color(limitedY: at(0, x, y), u: at(1, x / 2, y / 2), v: at(2, x / 2, y / 2))
        }
    }
}
