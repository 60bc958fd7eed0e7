import CaptureCore
import FFmpeg
import Glibc
import TurboJPEG

/// Brings an uncompressed frame of any format into planes of luma and chroma, at its own size.
///
/// Planes that lie right already are used where they are. Red, green and blue become BT.601 in full range, like JPEG.
/// Luma and chroma keep the matrix and the range of their source.
final class FrameUnpacker {
    /// What the planes will hold: nil for luma alone.
    let chroma: ChromaLayout?
    let range: ColorRange
    let matrix: ColorMatrix

    private let reader: FrameReader
    private let change: RangeChange?
    private let memory: PlanarMemory?
    /// A line of chroma pairs on their way.
    private let pairs: PlaneMemory?
    private let rgb: RGBStage?
    /// Copies of planes that may not be read where they are, made when first needed.
    private var copies: [3 of PlaneMemory?] = [nil, nil, nil]

    /// - Parameters:
    ///   - lumaOnly: no chroma is wanted.
    ///   - wanted: the range to bring the picture to at once, while its lines are in the cache; nil: leave it. It is
    ///     only followed where the planes are copied anyway or would have to be for the change.
    init(_ reader: FrameReader, lumaOnly: Bool, range wanted: ColorRange?) throws(ConversionError) {
        self.reader = reader
        let size = reader.dimensions
        var layout: ChromaLayout?
        var (own, matrix) = (reader.range, reader.matrix)
        // As which it is taken further, if nobody wants another.
        var usual: ColorRange?
        switch reader.format {
        case .jpeg: own = .full
        case .gray, .deepGray: usual = .full
        case .packed422: layout = .s422
        case .packed444: layout = .s444
        case .semiPlanar(let chroma, _), .planar(let chroma, _): layout = chroma
        case .packedRGB, .converted, .deepBayer: (layout, own, matrix) = (.s420, .full, .bt601)
        }
        self.matrix = matrix
        chroma = lumaOnly ? nil : layout
        range = wanted ?? usual ?? own
        change = range == own ? nil : range == .full ? .toFull : .toLimited

        let isInPlace: Bool
        switch reader.format {
        case .gray, .planar: isInPlace = change == nil
        case .semiPlanar: isInPlace = change == nil && chroma == nil
        default: isInPlace = false
        }
        memory = isInPlace ? nil : try PlanarMemory(width: size.width, height: size.height, chroma: chroma)
        switch reader.format {
        case .packed422, .semiPlanar: pairs = try PlaneMemory(width: size.width * 2 + 2, height: 1)
        default: pairs = nil
        }
        rgb = try RGBStage(reader)
    }

    /// The planes are valid until the next call, and as long as the frame's own memory is.
    func unpack(_ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int]) throws(ConversionError) -> PlanarPicture {
        switch reader.format {
        case .jpeg: throw .failed("a compressed picture has no planes")
        case .packed422(let lumaFirst, let uFirst):
            let source = try reader.plane(0, regions, bytesUsed)
            return try packed422(source, lumaFirst: lumaFirst, uFirst: uFirst)
        case .packed444(let bytes, let y, let u, let v):
            return try packed444(try reader.plane(0, regions, bytesUsed), bytes, y, u, v)
        case .semiPlanar(_, let uFirst): return try semiPlanar(regions, bytesUsed, uFirst: uFirst)
        case .gray, .planar: return try planar(regions, bytesUsed)
        case .packedRGB, .converted, .deepBayer, .deepGray:
            guard let rgb, let memory else { throw .failed("there is no stage for this format") }
            try rgb.convert(regions, bytesUsed, to: memory)
            changeAll(memory)
            return memory.picture(range, matrix)
        }
    }

    private func planar(
        _ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int]
    ) throws(ConversionError) -> PlanarPicture {
        let size = reader.dimensions
        let isCopied = memory != nil
        let y = try view(0, size.width, size.height, regions, bytesUsed, isCopied: isCopied)
        var planes: (u: PlaneView, v: PlaneView, layout: ChromaLayout)?
        if case .planar(let layout, let uFirst) = reader.format, chroma != nil {
            let (width, height) = (layout.width(size.width), layout.height(size.height))
            let first = try view(1, width, height, regions, bytesUsed, isCopied: isCopied)
            let second = try view(2, width, height, regions, bytesUsed, isCopied: isCopied)
            planes = uFirst ? (first, second, layout) : (second, first, layout)
        }
        guard let memory else { return PlanarPicture(y: y, chroma: planes, range: range, matrix: matrix) }
        copy(y, memory.y)
        if let planes, let target = memory.chroma {
            copy(planes.u, target.u)
            copy(planes.v, target.v)
        }
        changeAll(memory)
        return memory.picture(range, matrix)
    }

    /// - Parameter isCopied: it will be copied at once, so what follows it is never read.
    private func view(
        _ plane: Int, _ width: Int, _ height: Int, _ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int],
        isCopied: Bool
    ) throws(ConversionError) -> PlaneView {
        let bytes = try reader.plane(plane, regions, bytesUsed)
        let view = PlaneView(base: try pixels(bytes), stride: reader.stride(plane), width: width, height: height)
        if isCopied { return view }
        if try reader.hasMargin(plane, regions) { return view }
        let copied: PlaneMemory
        if let copy = copies[plane] {
            copied = copy
        } else {
            copied = try PlaneMemory(width: width, height: height)
            copies[plane] = copied
        }
        copy(view, copied)
        return copied.view
    }

    private func packed422(
        _ source: UnsafeRawBufferPointer, lumaFirst: Bool, uFirst: Bool
    ) throws(ConversionError) -> PlanarPicture {
        guard let memory, let pairs else { throw .failed("there is no memory for this format") }
        let base = try pixels(source)
        let width = reader.dimensions.width
        let halves = (width + 1) / 2
        for line in 0..<reader.dimensions.height {
            let from = base + line * reader.stride(0)
            let luma = memory.y.line(line)
            if let target = memory.chroma {
                PixelKernels.split(
                    from, first: lumaFirst ? luma : pairs.base, second: lumaFirst ? pairs.base : luma, pairs: halves * 2
                )
                let (u, v) = (target.u.line(line), target.v.line(line))
                PixelKernels.split(pairs.base, first: uFirst ? u : v, second: uFirst ? v : u, pairs: halves)
                change?.chroma(u, halves)
                change?.chroma(v, halves)
            } else {
                PixelKernels.split(
                    from, first: lumaFirst ? luma : nil, second: lumaFirst ? nil : luma, pairs: halves * 2)
            }
            change?.luma(luma, width)
        }
        return memory.picture(range, matrix)
    }

    private func packed444(
        _ source: UnsafeRawBufferPointer, _ bytes: Int, _ y: Int, _ u: Int, _ v: Int
    ) throws(ConversionError) -> PlanarPicture {
        guard let memory else { throw .failed("there is no memory for this format") }
        let base = try pixels(source)
        let width = reader.dimensions.width
        for line in 0..<reader.dimensions.height {
            let from = base + line * reader.stride(0)
            PixelKernels.gather(from + y, every: bytes, into: memory.y.line(line), count: width)
            guard let target = memory.chroma else { continue }
            PixelKernels.gather(from + u, every: bytes, into: target.u.line(line), count: width)
            PixelKernels.gather(from + v, every: bytes, into: target.v.line(line), count: width)
        }
        changeAll(memory)
        return memory.picture(range, matrix)
    }

    private func semiPlanar(
        _ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int], uFirst: Bool
    ) throws(ConversionError) -> PlanarPicture {
        let size = reader.dimensions
        // Luma lies right as it is unless its range has to change.
        var y = try view(0, size.width, size.height, regions, bytesUsed, isCopied: change != nil)
        if let change, let memory {
            for line in 0..<size.height {
                let target = memory.y.line(line)
                memcpy(target, y.line(line), size.width)
                change.luma(target, size.width)
            }
            y = memory.y.view
        }
        let base = try pixels(try reader.plane(1, regions, bytesUsed))
        guard let target = memory?.chroma else { return PlanarPicture(y: y, chroma: nil, range: range, matrix: matrix) }
        for line in 0..<target.u.height {
            let (u, v) = (target.u.line(line), target.v.line(line))
            PixelKernels.split(
                base + line * reader.stride(1), first: uFirst ? u : v, second: uFirst ? v : u, pairs: target.u.width)
            change?.chroma(u, target.u.width)
            change?.chroma(v, target.u.width)
        }
        return PlanarPicture(
            y: y, chroma: (target.u.view, target.v.view, target.layout), range: range, matrix: matrix)
    }

    private func changeAll(_ memory: PlanarMemory) {
        guard let change else { return }
        for line in 0..<memory.y.height { change.luma(memory.y.line(line), memory.y.width) }
        guard let chroma = memory.chroma else { return }
        for line in 0..<chroma.u.height {
            change.chroma(chroma.u.line(line), chroma.u.width)
            change.chroma(chroma.v.line(line), chroma.v.width)
        }
    }

    private func copy(_ source: PlaneView, _ target: PlaneMemory) {
        for line in 0..<source.height { memcpy(target.line(line), source.line(line), source.width) }
    }

    private func pixels(_ bytes: UnsafeRawBufferPointer) throws(ConversionError) -> ConstantPixels {
        guard let base = bytes.baseAddress else { throw .truncated(needed: 1, delivered: 0) }
        return base.assumingMemoryBound(to: UInt8.self)
    }
}
