import FFmpeg
import Glibc
import TurboJPEG

/// One plane of 8-bit samples that somebody else owns.
struct PlaneView {
    var base: ConstantPixels
    /// Bytes from one line to the next; 0 for a plane whose lines are all the same.
    var stride: Int
    var width: Int
    var height: Int

    func line(_ index: Int) -> ConstantPixels { base + index * stride }
    var writable: UnsafeMutableRawPointer { UnsafeMutableRawPointer(mutating: base) }
}

/// A picture as planes of luma and chroma: what every conversion goes through.
struct PlanarPicture {
    var y: PlaneView
    /// nil for luma alone.
    var chroma: (u: PlaneView, v: PlaneView, layout: ChromaLayout)?
    var range: ColorRange
    var matrix: ColorMatrix

    var width: Int { y.width }
    var height: Int { y.height }
}

/// Memory for one plane. Lines are padded and two more follow, because libraries write whole blocks.
final class PlaneMemory {
    let base: Pixels
    let stride: Int
    let width: Int
    let height: Int

    /// Width in bytes.
    init(width: Int, height: Int) throws(ConversionError) {
        stride = (width + 64 + 63) & ~63
        self.width = width
        self.height = height
        var memory: UnsafeMutableRawPointer?
        let bytes = stride * (height + 2)
        guard posix_memalign(&memory, 64, bytes) == 0, let memory else {
            throw .failed("no memory for a plane of \(bytes) bytes")
        }
        memset(memory, 0, bytes)
        base = memory.bindMemory(to: UInt8.self, capacity: bytes)
    }

    deinit { free(base) }

    func line(_ index: Int) -> Pixels { base + index * stride }
    var view: PlaneView { PlaneView(base: base, stride: stride, width: width, height: height) }
    /// All of the plane's lines.
    var bytes: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: base, count: stride * height) }
}

/// Memory for a planar picture.
final class PlanarMemory {
    let y: PlaneMemory
    let chroma: (u: PlaneMemory, v: PlaneMemory, layout: ChromaLayout)?

    /// No layout: luma alone.
    init(width: Int, height: Int, chroma layout: ChromaLayout?) throws(ConversionError) {
        y = try PlaneMemory(width: width, height: height)
        if let layout {
            let (width, height) = (layout.width(width), layout.height(height))
            chroma = (
                try PlaneMemory(width: width, height: height), try PlaneMemory(width: width, height: height), layout
            )
        } else {
            chroma = nil
        }
    }

    func picture(_ range: ColorRange, _ matrix: ColorMatrix) -> PlanarPicture {
        PlanarPicture(
            y: y.view, chroma: chroma.map { ($0.u.view, $0.v.view, $0.layout) }, range: range, matrix: matrix)
    }

    /// For libjpeg-turbo to read from or write to.
    var jpegPlanes: YUVPlanes { picture(.full, .bt601).jpegPlanes }
}

extension PlanarPicture {
    var jpegPlanes: YUVPlanes {
        guard let chroma else { return YUVPlanes(gray: y.writable, stride: y.stride) }
        return YUVPlanes(
            y: y.writable, yStride: y.stride, u: chroma.u.writable, uStride: chroma.u.stride,
            v: chroma.v.writable, vStride: chroma.v.stride)
    }
}
