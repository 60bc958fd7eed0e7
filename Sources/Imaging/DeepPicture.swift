public import BusProtocol
public import CaptureCore
import FFmpeg

extension Rendition.Encoding {
    /// Samples of 16 bits.
    public var isDeep: Bool { self == .gray16 || self == .rgb48 }

    /// The encoding of 8 bits whose samples, made wider, are the same picture; nil: it has such itself.
    var narrow: Rendition.Encoding? {
        switch self {
        case .gray16: .gray
        case .rgb48: .rgb
        default: nil
        }
    }
}

extension SourceFormat {
    /// How its samples of more than 8 bits lie, one a pixel; nil: they have no more than 8.
    fileprivate var deep: (image: ImageFormat, bits: Int)? {
        switch self {
        case .deepGray(let format): (format, format.bits)
        case .deepBayer(let format, let bits): (format, bits)
        default: nil
        }
    }

    var isDeep: Bool { deep != nil }
}

extension PictureConverter {
    /// The encoding that keeps most of the pixels of a format: their bits, and that they have colour. nil: no picture
    /// can be made of them.
    public static func widestEncoding(of pixelFormat: PixelFormat) -> Rendition.Encoding? {
        switch SourceFormat(pixelFormat) {
        case nil: nil
        case .deepGray?: .gray16
        case .deepBayer?: .rgb48
        case .gray?: .gray
        default: .rgb
        }
    }
}

/// Makes pictures of 16 bits a sample out of frames of more than 8.
final class DeepPicture {
    private let reader: FrameReader
    private let request: PictureRequest
    private let layout: FrameLayout
    private let bits: Int
    private let isSwapped: Bool
    /// What is taken of the frame.
    private let part: CropRectangle
    /// The frame's samples, scaled to 16 bits.
    private let samples: PlaneMemory
    /// Of Bayer: red, green and blue at the frame's size, from the samples.
    private let colours: (scaler: Scaler, memory: PlaneMemory)?
    /// What is scaled and turned, plane by plane: luma, or red, green and blue.
    private let planes: [PlaneMemory]
    private let scaler: Scaler?
    private let scaled: [PlaneMemory]
    private let turned: [PlaneMemory]

    /// nil for frames that have no more than 8 bits a sample.
    ///
    /// - Parameter part: of a Bayer frame, from the other pixels of which it gets its colours; nil: all.
    init?(
        _ reader: FrameReader, _ request: PictureRequest, _ layout: FrameLayout, part: CropRectangle?
    ) throws(ConversionError) {
        guard let (image, bits) = reader.format.deep else { return nil }
        (self.reader, self.request, self.layout, self.bits) = (reader, request, layout, bits)
        isSwapped = image.isSwapped
        let (whole, wanted, made) = (reader.dimensions, request.unturned, request.dimensions)
        self.part = part ?? CropRectangle(left: 0, top: 0, width: whole.width, height: whole.height)
        let size = self.part.dimensions
        samples = try PlaneMemory(width: whole.width * 2, height: whole.height)
        let count = image.isBayer && request.encoding == .rgb48 ? 3 : 1
        func memory(_ size: Dimensions) throws(ConversionError) -> [PlaneMemory] {
            var planes: [PlaneMemory] = []
            for _ in 0..<count { planes.append(try PlaneMemory(width: size.width * 2, height: size.height)) }
            return planes
        }
        if image.isBayer {
            let scaler = try Self.scaler(image, whole, .rgb48, whole)
            colours = (scaler, try PlaneMemory(width: whole.width * 6, height: whole.height))
            planes = try memory(size)
        } else {
            (colours, planes) = (nil, [samples])
        }
        (scaler, scaled) =
            size == wanted
            ? (nil, planes) : (try Self.scaler(.gray16, size, .gray16, wanted), try memory(wanted))
        turned = request.orientation == .upright ? scaled : try memory(made)
    }

    private static func scaler(
        _ from: ImageFormat, _ size: Dimensions, _ to: ImageFormat, _ wanted: Dimensions
    ) throws(ConversionError) -> Scaler {
        try failing { () throws(ScalerError) in
            try Scaler(
                from: ImageDescription(from, width: size.width, height: size.height, range: .full),
                to: ImageDescription(to, width: wanted.width, height: wanted.height, range: .full))
        }
    }

    func convert(
        _ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int], into output: PictureBuffer
    ) throws(ConversionError) {
        guard let frame = try reader.plane(0, regions, bytesUsed).baseAddress else {
            throw .truncated(needed: 1, delivered: 0)
        }
        let size = reader.dimensions
        for line in 0..<size.height {
            WordKernels.widen(
                frame + line * reader.stride(0), bits: bits, isSwapped: isSwapped, into: samples.line(line),
                count: size.width)
        }
        if let (demosaic, memory) = colours {
            try failing { () throws(ScalerError) in
                try demosaic.scale(
                    ImagePlanes(samples.base, stride: samples.stride),
                    to: ImagePlanes(memory.base, stride: memory.stride))
            }
            for line in 0..<part.height {
                let source = memory.line(line + part.top) + 6 * part.left
                if planes.count == 3 {
                    WordKernels.split(
                        source, planes[0].line(line), planes[1].line(line), planes[2].line(line), part.width)
                } else {
                    WordKernels.luma(source, into: planes[0].line(line), count: part.width)
                }
            }
        }
        if let scaler {
            for (from, to) in zip(planes, scaled) {
                try failing { () throws(ScalerError) in
                    try scaler.scale(
                        ImagePlanes(from.base, stride: from.stride), to: ImagePlanes(to.base, stride: to.stride))
                }
            }
        }
        if request.orientation != .upright {
            for (from, to) in zip(scaled, turned) {
                PlaneTurner.turn(
                    from.base, stride: from.stride, request.unturned, bytesPerPixel: 2, request.orientation,
                    to: to.base, targetStride: to.stride)
            }
        }
        try write(output)
    }

    private func write(_ output: PictureBuffer) throws(ConversionError) {
        try output.reserve(layout.totalBytes)
        guard let base = output.room.baseAddress else { throw .failed("there is no room for the picture") }
        let (width, stride) = (request.dimensions.width, layout.planes[0].stride)
        for line in 0..<request.dimensions.height {
            let target = base + line * stride
            if request.encoding == .gray16 {
                target.copyMemory(from: turned[0].line(line), byteCount: width * 2)
            } else {
                WordKernels.merge(
                    turned[0].line(line), turned[turned.count / 2].line(line), turned[turned.count - 1].line(line),
                    into: target, count: width)
            }
        }
        output.setCount(layout.totalBytes)
    }
}

extension PictureBuffer {
    /// Makes a picture of 8 bits a sample its own, whose lines have no padding, with 16.
    func setWidened(_ picture: PictureBuffer, _ layout: FrameLayout) throws(ConversionError) {
        let bytes = picture.bytes
        guard bytes.count * 2 == layout.totalBytes, let source = bytes.baseAddress else {
            throw .failed("a picture of \(bytes.count) bytes, where 16 bits have \(layout.totalBytes)")
        }
        try reserve(layout.totalBytes)
        guard let target = room.baseAddress else { throw .failed("there is no room for the picture") }
        WordKernels.widen(source.assumingMemoryBound(to: UInt8.self), into: target, count: bytes.count)
        setCount(layout.totalBytes)
    }
}
