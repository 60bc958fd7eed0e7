import CaptureCore
import FFmpeg
import Glibc
import TurboJPEG

/// Brings red, green and blue, or grey of more than 8 bits, into planes as JPEG has them.
final class RGBStage {
    private let reader: FrameReader
    private let compressor: JPEGCompressor
    private let scaler: ScalerStage?
    private let packed: PackedFormat?
    /// Frames in video range, brought to full range.
    private let expander: RangeExpander?

    /// nil for formats that need no such stage.
    init?(_ reader: FrameReader) throws(ConversionError) {
        self.reader = reader
        expander = try RangeExpander(reader)
        switch reader.format {
        case .packedRGB(let format, _): (packed, scaler) = (format, nil)
        case .deepGray: (packed, scaler) = (nil, try ScalerStage(reader, to: .gray8))
        case .converted(let format) where !format.isBayer:
            (packed, scaler) = (.bgr, try ScalerStage(reader, to: .bgr24))
        // The one colour order that libswscale makes of Bayer samples by itself.
        case .converted, .deepBayer: (packed, scaler) = (.rgb, try ScalerStage(reader, to: .rgb24))
        default: return nil
        }
        compressor = try failing { () throws(JPEGError) in try JPEGCompressor() }
    }

    func convert(
        _ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int], to memory: PlanarMemory
    ) throws(ConversionError) {
        guard let packed else {
            try scaler?.convert(regions, bytesUsed, to: ImagePlanes(memory.y.base, stride: memory.y.stride))
            return
        }
        let source: UnsafeRawBufferPointer
        let stride: Int
        if let scaler {
            (source, stride) = try scaler.convert(regions, bytesUsed)
        } else if let expander {
            (source, stride) = try expander.expand(try reader.plane(0, regions, bytesUsed))
        } else {
            (source, stride) = (try reader.plane(0, regions, bytesUsed), reader.stride(0))
        }
        let size = reader.dimensions
        let subsampling = memory.chroma.map { $0.layout.jpeg ?? .s420 } ?? .gray
        try failing { () throws(JPEGError) in
            try compressor.convert(
                source, format: packed, width: size.width, height: size.height, stride: stride, to: memory.jpegPlanes,
                subsampling: subsampling)
        }
    }
}

/// Brings a packed frame that only libswscale reads into another packed format, at its own or another size.
final class ScalerStage {
    private let reader: FrameReader
    /// One step, or for Bayer two: libswscale would make them one itself, at a higher cost.
    private let steps: [Scaler]
    /// What each step makes but the last, and the last unless the caller says where; made when first needed.
    private var results: [PlaneMemory?]
    /// Samples of fewer than 16 bits shifted up.
    private let shift: Int
    /// Frames that may not be read where they are; made when first needed.
    private var copied: PlaneMemory?
    private let expander: RangeExpander?

    init(
        _ reader: FrameReader, to target: ImageFormat, dimensions: Dimensions? = nil
    ) throws(ConversionError) {
        self.reader = reader
        expander = try RangeExpander(reader)
        let size = reader.dimensions
        let wanted = dimensions ?? size
        let source: ImageFormat
        switch reader.format {
        case .packedRGB(_, let format), .deepGray(let format), .converted(let format): (source, shift) = (format, 0)
        case .deepBayer(let format, let bits): (source, shift) = (format, 16 - bits)
        default: throw .failed("libswscale is not asked for this format")
        }
        let steps: [(ImageFormat, Dimensions)] =
            source.isBayer && (target != .rgb24 || wanted != size)
            ? [(.rgb24, size), (target, wanted)] : [(target, wanted)]
        var scalers: [Scaler] = []
        var from = ImageDescription(source, width: size.width, height: size.height, range: .full)
        for (format, dimensions) in steps {
            let to = ImageDescription(format, width: dimensions.width, height: dimensions.height, range: .full)
            scalers.append(try failing { () throws(ScalerError) in try Scaler(from: from, to: to) })
            from = to
        }
        self.steps = scalers
        results = Array(repeating: nil, count: scalers.count)
    }

    /// Into memory of its own; valid until the next call.
    func convert(
        _ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int]
    ) throws(ConversionError) -> (bytes: UnsafeRawBufferPointer, stride: Int) {
        let memory = try result(steps.count - 1)
        try convert(regions, bytesUsed, to: ImagePlanes(memory.base, stride: memory.stride))
        return (UnsafeRawBufferPointer(memory.bytes), memory.stride)
    }

    func convert(
        _ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int], to target: ImagePlanes
    ) throws(ConversionError) {
        var picture = try source(regions, bytesUsed)
        for index in steps.indices {
            var made = target
            if index < steps.count - 1 {
                let memory = try result(index)
                made = ImagePlanes(memory.base, stride: memory.stride)
            }
            try failing { () throws(ScalerError) in try steps[index].scale(picture, to: made) }
            picture = made
        }
    }

    /// The frame where it is, or copied to where libswscale may read on.
    private func source(_ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int]) throws(ConversionError) -> ImagePlanes
    {
        let plane = try reader.plane(0, regions, bytesUsed)
        if let expander {
            let (bytes, stride) = try expander.expand(plane)
            guard let base = bytes.baseAddress else { throw .truncated(needed: 1, delivered: 0) }
            return ImagePlanes(UnsafeMutableRawPointer(mutating: base), stride: stride)
        }
        guard let base = UnsafeMutableRawPointer(mutating: plane.baseAddress) else {
            throw .truncated(needed: 1, delivered: 0)
        }
        let stride = reader.stride(0)
        if shift == 0, try reader.hasMargin(0, regions) { return ImagePlanes(base, stride: stride) }
        let size = reader.dimensions
        let lineBytes = reader.format.lineBytes(plane: 0, width: size.width)
        let memory: PlaneMemory
        if let copied {
            memory = copied
        } else {
            memory = try PlaneMemory(width: lineBytes, height: size.height)
            copied = memory
        }
        for line in 0..<size.height {
            if shift == 0 {
                memcpy(memory.line(line), base + line * stride, lineBytes)
            } else {
                PixelKernels.shiftUp(base + line * stride, by: shift, into: memory.line(line), count: size.width)
            }
        }
        return ImagePlanes(memory.base, stride: memory.stride)
    }

    private func result(_ index: Int) throws(ConversionError) -> PlaneMemory {
        if let memory = results[index] { return memory }
        let made = steps[index].destination
        let memory = try PlaneMemory(width: made.format.lineBytes(plane: 0, width: made.width), height: made.height)
        results[index] = memory
        return memory
    }
}

/// Brings red, green and blue of 8 bits from video range to full range.
final class RangeExpander {
    private let reader: FrameReader
    private let memory: PlaneMemory

    /// nil for frames that are in full range, or in none of these formats.
    init?(_ reader: FrameReader) throws(ConversionError) {
        guard reader.range == .limited, case .packedRGB = reader.format else { return nil }
        self.reader = reader
        let size = reader.dimensions
        memory = try PlaneMemory(
            width: reader.format.lineBytes(plane: 0, width: size.width), height: size.height)
    }

    /// Into memory of its own; valid until the next call.
    func expand(_ plane: UnsafeRawBufferPointer) throws(ConversionError) -> (UnsafeRawBufferPointer, stride: Int) {
        guard let base = plane.baseAddress else { throw .truncated(needed: 1, delivered: 0) }
        for line in 0..<memory.height {
            let target = memory.line(line)
            memcpy(target, base + line * reader.stride(0), memory.width)
            RangeChange.toFull.luma(target, memory.width)
        }
        return (UnsafeRawBufferPointer(memory.bytes), memory.stride)
    }
}

/// Turns a library's refusal into this module's.
func failing<Result, Failure: Error & CustomStringConvertible>(
    _ body: () throws(Failure) -> Result
) throws(ConversionError) -> Result {
    do { return try body() } catch { throw .failed(error.description) }
}
