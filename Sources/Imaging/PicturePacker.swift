import BusProtocol
import CaptureCore
import FFmpeg
import Glibc
import TurboJPEG

extension Rendition.Encoding {
    /// The V4L2 format that the encoding's payload has; nil for `native`.
    var pixelFormat: PixelFormat? {
        switch self {
        case .native: nil
        case .jpeg: .jpeg
        case .bgr: .bgr24
        case .rgb: .rgb24
        case .gray: .grey
        case .gray16: .grey16
        case .rgb48: .rgb48
        case .yuyv: .yuyv
        case .nv12: .nv12
        case .i420: .i420
        }
    }

    /// The range that luma has in the payload: JPEG and grey are full, other YUV limited; nil where it doesn't matter.
    var range: ColorRange? {
        switch self {
        case .jpeg, .gray, .gray16: .full
        case .yuyv, .nv12, .i420: .limited
        case .native, .bgr, .rgb, .rgb48: nil
        }
    }
}

/// Writes planes of the right size as the payload that was asked for.
final class PicturePacker {
    let layout: FrameLayout
    private let request: PictureRequest
    private let work: Work

    private enum Work {
        case jpeg(JPEGCompressor, ChromaSubsampling)
        case rgb(Scaler)
        case gray, i420
        /// With lines for chroma on its way.
        case nv12(Lines)
        case yuyv(Lines)
    }

    private struct Lines {
        var y: PlaneMemory
        var u: PlaneMemory
        var v: PlaneMemory
        var pairs: PlaneMemory
    }

    /// The chroma that ``pack(_:into:)`` wants for a picture, given what its source has.
    static func chroma(for request: PictureRequest, source: ChromaLayout?, isScaled: Bool) -> ChromaLayout? {
        switch request.encoding {
        case .native, .gray, .gray16, .rgb48: nil
        case .yuyv: .s422
        case .nv12, .i420: .s420
        // Of others, and where the number of lines is odd, libswscale puts chroma between that of two pixels, which
        // shifts the edges of colours.
        case .bgr, .rgb:
            source.map { ($0 == .s422 || $0 == .s420) && request.dimensions.height % 2 == 0 ? $0 : .s444 }
        // Smaller pictures keep no more chroma than JPEG pictures mostly have.
        case .jpeg: source.map { isScaled || $0.jpeg == nil ? .s420 : $0 }
        }
    }

    /// - Parameters:
    ///   - chroma: as ``chroma(for:source:isScaled:)`` says.
    ///   - range: of the planes that will come, as is the matrix.
    init(
        _ request: PictureRequest, chroma: ChromaLayout?, range: ColorRange, matrix: ColorMatrix
    ) throws(ConversionError) {
        let size = request.dimensions
        guard let format = request.encoding.pixelFormat, let layout = FrameLayout.packed(format, size) else {
            throw .failed("\(request.encoding.rawValue) can't be made")
        }
        self.layout = layout
        self.request = request
        switch request.encoding {
        case .native, .gray16, .rgb48: throw .failed("\(request.encoding.rawValue) is not made of bytes")
        case .gray: work = .gray
        case .i420: work = .i420
        case .nv12, .yuyv:
            let lines = Lines(
                y: try PlaneMemory(width: size.width, height: 1), u: try PlaneMemory(width: size.width, height: 1),
                v: try PlaneMemory(width: size.width, height: 1),
                pairs: try PlaneMemory(width: size.width + 2, height: 1))
            work = request.encoding == .nv12 ? .nv12(lines) : .yuyv(lines)
        case .bgr, .rgb:
            let source = chroma.map { $0.planarFormat ?? .yuv420p } ?? .gray8
            let target = request.encoding == .bgr ? ImageFormat.bgr24 : .rgb24
            work = .rgb(
                try failing { () throws(ScalerError) in
                    try Scaler(
                        from: ImageDescription(
                            source, width: size.width, height: size.height, range: range, matrix: matrix),
                        to: ImageDescription(target, width: size.width, height: size.height, range: .full))
                })
        case .jpeg:
            let compressor = try failing { () throws(JPEGError) in try JPEGCompressor() }
            work = .jpeg(compressor, chroma.map { $0.jpeg ?? .s420 } ?? .gray)
        }
    }

    func pack(_ picture: PlanarPicture, into output: PictureBuffer) throws(ConversionError) {
        switch work {
        case .jpeg(let compressor, let subsampling): try compress(picture, compressor, subsampling, into: output)
        case .rgb(let scaler): try writeRGB(picture, scaler, into: output)
        case .gray, .i420, .nv12, .yuyv: try writePlanes(picture, into: output)
        }
    }

    // MARK: JPEG

    /// Planes as libjpeg-turbo wants them: BT.601 in full range, sides rounded up to whole chroma pixels. Made when
    /// first needed.
    private var padded: PlanarMemory?
    /// What a line of chroma gives to the luma of its pixels.
    private var offsets: [Int32] = []

    private func compress(
        _ picture: PlanarPicture, _ compressor: JPEGCompressor, _ subsampling: ChromaSubsampling,
        into output: PictureBuffer
    ) throws(ConversionError) {
        let size = request.dimensions
        try output.reserve(
            JPEGCompressor.maximumBytes(width: size.width, height: size.height, subsampling: subsampling))
        let isWhole = size.width % subsampling.horizontalFactor == 0 && size.height % subsampling.verticalFactor == 0
        let isReady = picture.range == .full && (picture.matrix == .bt601 || picture.chroma == nil)
        let source = isReady && isWhole ? picture : try pad(picture, subsampling)
        let planes = source.jpegPlanes
        let count = try failing { () throws(JPEGError) in
            try compressor.compress(
                planes, width: size.width, height: size.height, subsampling: subsampling, quality: request.quality,
                into: output.room)
        }
        output.setCount(count)
    }

    private func pad(
        _ picture: PlanarPicture, _ subsampling: ChromaSubsampling
    ) throws(ConversionError) -> PlanarPicture {
        let size = request.dimensions
        let memory: PlanarMemory
        if let padded {
            memory = padded
        } else {
            memory = try PlanarMemory(
                width: subsampling.planeWidth(0, pictureWidth: size.width),
                height: subsampling.planeHeight(0, pictureHeight: size.height), chroma: picture.chroma?.layout)
            padded = memory
        }
        let hasOtherMatrix = picture.matrix != .bt601 && picture.chroma != nil
        let change: RangeChange? = picture.range == .full || hasOtherMatrix ? nil : .toFull
        for line in 0..<memory.y.height {
            let target = memory.y.line(line)
            memcpy(target, picture.y.line(min(line, picture.y.height - 1)), size.width)
            for column in size.width..<memory.y.width { target[column] = target[size.width - 1] }
            change?.luma(target, memory.y.width)
        }
        if hasOtherMatrix {
            changeMatrix(picture, memory)
        } else if let chroma = picture.chroma, let target = memory.chroma {
            for line in 0..<target.u.height {
                memcpy(target.u.line(line), chroma.u.line(line), target.u.width)
                memcpy(target.v.line(line), chroma.v.line(line), target.v.width)
                change?.chroma(target.u.line(line), target.u.width)
                change?.chroma(target.v.line(line), target.v.width)
            }
        }
        return memory.picture(.full, .bt601)
    }

    /// - Parameter memory: has the luma already.
    private func changeMatrix(_ picture: PlanarPicture, _ memory: PlanarMemory) {
        guard let chroma = picture.chroma, let target = memory.chroma else { return }
        let change = MatrixChange(from: picture.matrix, picture.range)
        if offsets.count < target.u.width { offsets = Array(repeating: 0, count: target.u.width) }
        offsets.withUnsafeMutableBufferPointer { offsets in
            guard let offsets = offsets.baseAddress else { return }
            for line in 0..<target.u.height {
                change.chroma(
                    chroma.u.line(line), chroma.v.line(line), toU: target.u.line(line), toV: target.v.line(line),
                    offsets: offsets, target.u.width)
                for lumaLine in line * chroma.layout.down..<min((line + 1) * chroma.layout.down, memory.y.height) {
                    change.luma(
                        memory.y.line(lumaLine), offsets: offsets, across: chroma.layout.across, memory.y.width)
                }
            }
        }
    }

    // MARK: Uncompressed

    private var paddedLines: PlaneMemory?

    private func writeRGB(
        _ picture: PlanarPicture, _ scaler: Scaler, into output: PictureBuffer
    ) throws(ConversionError) {
        let base = try begin(output)
        var planes = ImagePlanes(picture.y.writable, stride: picture.y.stride)
        if let chroma = picture.chroma {
            planes[1] = (chroma.u.writable, chroma.u.stride)
            planes[2] = (chroma.v.writable, chroma.v.stride)
        }
        let stride = layout.planes[0].stride
        if request.dimensions.width % 8 == 0 {
            try failing { () throws(ScalerError) in try scaler.scale(planes, to: ImagePlanes(base, stride: stride)) }
        } else {
            // Where lines have no padding libswscale leaves out the last few pixels of such widths.
            let made: PlaneMemory
            if let padded = paddedLines {
                made = padded
            } else {
                made = try PlaneMemory(width: stride, height: request.dimensions.height)
                paddedLines = made
            }
            try failing { () throws(ScalerError) in
                try scaler.scale(planes, to: ImagePlanes(made.base, stride: made.stride))
            }
            for line in 0..<made.height { memcpy(self.line(base, 0, line), made.line(line), stride) }
        }
        output.setCount(layout.totalBytes)
    }

    private func writePlanes(_ picture: PlanarPicture, into output: PictureBuffer) throws(ConversionError) {
        let base = try begin(output)
        let change: RangeChange? =
            request.encoding.range == picture.range ? nil : picture.range == .full ? .toLimited : .toFull
        switch work {
        case .jpeg, .rgb: break
        case .gray: write(picture.y, change, to: base, 0)
        case .i420:
            guard let chroma = picture.chroma else { throw .failed("the picture has no chroma") }
            write(picture.y, change, to: base, 0)
            write(chroma.u, change, isChroma: true, to: base, 1)
            write(chroma.v, change, isChroma: true, to: base, 2)
        case .nv12(let lines):
            guard let chroma = picture.chroma else { throw .failed("the picture has no chroma") }
            write(picture.y, change, to: base, 0)
            for line in 0..<chroma.u.height {
                let (u, v) = chromaLine(chroma, line, change, lines)
                PixelKernels.merge(first: u, second: v, into: self.line(base, 1, line), pairs: chroma.u.width)
            }
        case .yuyv(let lines):
            guard let chroma = picture.chroma else { throw .failed("the picture has no chroma") }
            for line in 0..<picture.height {
                var y = picture.y.line(line)
                if let change {
                    memcpy(lines.y.base, y, picture.width)
                    change.luma(lines.y.base, picture.width)
                    y = ConstantPixels(lines.y.base)
                }
                let (u, v) = chromaLine(chroma, line, change, lines)
                PixelKernels.merge(first: u, second: v, into: lines.pairs.base, pairs: chroma.u.width)
                PixelKernels.merge(
                    first: y, second: lines.pairs.base, into: self.line(base, 0, line), pairs: picture.width)
            }
        }
        output.setCount(layout.totalBytes)
    }

    private func chromaLine(
        _ chroma: (u: PlaneView, v: PlaneView, layout: ChromaLayout), _ line: Int, _ change: RangeChange?,
        _ lines: Lines
    ) -> (ConstantPixels, ConstantPixels) {
        guard let change else { return (chroma.u.line(line), chroma.v.line(line)) }
        memcpy(lines.u.base, chroma.u.line(line), chroma.u.width)
        memcpy(lines.v.base, chroma.v.line(line), chroma.v.width)
        change.chroma(lines.u.base, chroma.u.width)
        change.chroma(lines.v.base, chroma.v.width)
        return (ConstantPixels(lines.u.base), ConstantPixels(lines.v.base))
    }

    private func write(
        _ plane: PlaneView, _ change: RangeChange?, isChroma: Bool = false, to base: UnsafeMutableRawPointer,
        _ index: Int
    ) {
        for line in 0..<plane.height {
            let target = self.line(base, index, line)
            memcpy(target, plane.line(line), plane.width)
            guard let change else { continue }
            if isChroma { change.chroma(target, plane.width) } else { change.luma(target, plane.width) }
        }
    }

    private func line(_ base: UnsafeMutableRawPointer, _ plane: Int, _ line: Int) -> Pixels {
        (base + layout.planes[plane].offset + line * layout.planes[plane].stride).assumingMemoryBound(to: UInt8.self)
    }

    /// Room for the payload, and some bytes behind it: libswscale writes whole blocks.
    private func begin(_ output: PictureBuffer) throws(ConversionError) -> UnsafeMutableRawPointer {
        try output.reserve(layout.totalBytes + 128)
        guard let base = output.room.baseAddress else { throw .failed("there is no room for the picture") }
        return base
    }
}
