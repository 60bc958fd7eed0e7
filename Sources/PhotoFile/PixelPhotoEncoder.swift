import BusProtocol
import CaptureCore
import EXIF
import FFmpeg
import Imaging
import TIFF

/// Makes photos that keep each pixel, as PNG or TIFF, out of frames of one layout: of 16 bits where the camera has more
/// than 8, red, green and blue, or grey. They are upright as they lie.
final class PixelPhotoEncoder {
    /// Of the pixels in the file.
    let dimensions: Dimensions

    private let pixelAspectRatio: FormatExtensions.Ratio
    private let fileType: PhotoFileType
    private let encoding: Rendition.Encoding
    private let converter: PictureConverter
    /// nil: TIFF.
    private let png: PNGEncoder?
    private let output = PictureBuffer()

    /// - Throws: `formatUnsupported` if no picture can be made of this layout.
    init(_ layout: FrameLayout, _ making: PhotoMaking) throws(BusError) {
        guard let encoding = PictureConverter.widestEncoding(of: layout.pixelFormat) else {
            throw BusError(.formatUnsupported, "no picture can be made of \(layout.pixelFormat.name)")
        }
        let orientation = making.pixelOrientation
        dimensions = orientation.turned(layout.dimensions)
        var request = PictureRequest(encoding: encoding, dimensions: dimensions)
        request.orientation = orientation
        converter = try PictureConverter(from: layout, to: request)
        (fileType, self.encoding) = (making.fileType, encoding)
        pixelAspectRatio = converter.outputLayout.description.extensions.pixelAspectRatio
        do {
            png =
                making.fileType == .png
                ? try PNGEncoder(
                    encoding.image, width: dimensions.width, height: dimensions.height,
                    pixelShape: PixelShape(width: pixelAspectRatio.numerator, height: pixelAspectRatio.denominator))
                : nil
        } catch {
            throw BusError(.formatUnsupported, "no PNG can be made of \(dimensions): \(error)")
        }
    }

    /// - Parameter facts: what the file is to say.
    func encode(_ frame: PhotoPicture, _ facts: PhotoFacts) throws(PhotoFileError) -> EncodedPhoto {
        do {
            _ = try converter.convert([frame.bytes], bytesUsed: [frame.bytes.count], zoom: frame.zoom, into: output)
        } catch {
            throw PhotoFileError(error)
        }
        let bytes: [UInt8]
        do {
            bytes = try png.map { try picture($0, facts) } ?? tiff(facts)
        } catch let error as PhotoFileError {
            throw error
        } catch {
            throw .failed("\(error)")
        }
        return EncodedPhoto(bytes: bytes, dimensions: dimensions)
    }

    private func picture(_ encoder: PNGEncoder, _ facts: PhotoFacts) throws -> [UInt8] {
        guard let base = output.bytes.baseAddress else { throw PhotoFileError.failed("the picture is empty") }
        let planes = ImagePlanes(
            UnsafeMutableRawPointer(mutating: base), stride: converter.outputLayout.planes[0].stride)
        let exif = try PhotoEXIF(
            facts: facts, dimensions: dimensions, orientation: facts.orientation, pixelAspectRatio: pixelAspectRatio
        ).make(camera: nil)
        // These are of luma and chroma.
        for tag in [EXIFTag.componentsConfiguration, .yCbCrPositioning] { exif.remove(tag) }
        let words = try exif.serialized().dropFirst(EXIFData.header.count)
        return try PNGChunk.insert(PNGChunk("eXIf", words), into: try encoder.encode(planes))
    }

    private func tiff(_ facts: PhotoFacts) throws -> [UInt8] {
        let fields = PhotoFields(facts: facts)
        let file = try TIFFWriter(reserving: output.bytes.count + 8192)
        let exif = try file.writeEXIFDirectory(
            fields.exif + [
                TIFFField(.flashPixVersion, .integers("0100".utf8.map(Int.init))),
                TIFFField(.colorSpace, .integer(1)),
            ])
        let isGrey = encoding == .gray || encoding == .gray16
        try file.set(
            PhotoFields.size(dimensions, samples: isGrey ? 1 : 3, bits: encoding.isDeep ? 16 : 8) + [
                TIFFField(.compression, .integer(PhotoFields.Compression.none)),
                TIFFField(
                    .photometricInterpretation,
                    .integer(isGrey ? PhotoFields.Photometric.blackIsZero : PhotoFields.Photometric.rgb)),
            ])
        let density = PixelDensity(pixelAspectRatio)
        try file.set([
            TIFFField(.xResolution, .number(Double(density.across))),
            TIFFField(.yResolution, .number(Double(density.down.numerator) / Double(density.down.denominator))),
            TIFFField(.resolutionUnit, .integer(2)),
        ])
        try file.set(fields.photo)
        try file.set([TIFFField(.exifDirectory, .integer(exif))])
        try file.write(output.bytes)
        try file.writeDirectory()
        return file.finish()
    }
}

extension Rendition.Encoding {
    /// How its pixels lie, of one that keeps each.
    fileprivate var image: ImageFormat {
        switch self {
        case .gray: .gray8
        case .gray16: .gray16
        case .rgb48: .rgb48
        default: .rgb24
        }
    }
}

/// A part of a PNG file (ISO/IEC 15948, section 5.3).
struct PNGChunk {
    private let bytes: [UInt8]

    init(_ type: String, _ contents: ArraySlice<UInt8>) {
        var bytes = Self.word(UInt32(clamping: contents.count))
        bytes += type.utf8
        bytes += contents
        bytes += Self.word(Self.checksum(bytes[4...]))
        self.bytes = bytes
    }

    /// The signature and the first part, which always has as many.
    private static let headBytes = 8 + 25

    /// Puts it behind the first part, which says what the picture is.
    static func insert(_ chunk: PNGChunk, into file: [UInt8]) throws(PhotoFileError) -> [UInt8] {
        guard file.count > headBytes, file[12..<16].elementsEqual("IHDR".utf8) else {
            throw .failed("libavcodec made no PNG file")
        }
        return Array(file[..<headBytes]) + chunk.bytes + file[headBytes...]
    }

    private static func word(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }

    /// CRC-32 (section 5.5).
    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var rest: UInt32 = .max
        for byte in bytes {
            rest ^= UInt32(byte)
            for _ in 0..<8 { rest = rest & 1 == 1 ? rest >> 1 ^ 0xEDB8_8320 : rest >> 1 }
        }
        return ~rest
    }
}
