import BusProtocol
import CaptureCore
import TurboJPEG

/// Converts JPEG pictures without luma: RGB and CMYK. It decodes them to RGB pixels and converts those.
final class JPEGColorStage {
    let colors: JPEGHeader.Colors
    /// At which they are decoded.
    let scale: JPEGScale
    private let size: Dimensions
    private let converter: PictureConverter
    private let pixels = PictureBuffer()
    // What a picture is given in: made once.
    private var regions = [UnsafeRawBufferPointer(start: nil, count: 0)]
    private var used = [0]

    /// - Parameter dimensions: of the whole picture.
    init(
        _ colors: JPEGHeader.Colors, _ dimensions: Dimensions, _ scale: JPEGScale, _ request: PictureRequest
    ) throws(ConversionError) {
        (self.colors, self.scale) = (colors, scale)
        var request = request
        request.crop = request.crop.map { $0.divided(by: scale.rawValue) ?? $0 }
        size = Dimensions(width: scale.scaled(dimensions.width), height: scale.scaled(dimensions.height))
        guard let layout = FrameLayout.packed(.rgb24, size) else { throw .failed("a picture of \(size) can't be") }
        do throws(BusError) {
            converter = try PictureConverter(from: layout, to: request)
        } catch {
            throw .failed(error.message)
        }
    }

    /// - Parameter judge: told the decoder's warning, if there was one; throws where it is damage.
    func convert(
        _ jpeg: UnsafeRawBufferPointer, _ header: JPEGHeader, _ decompressor: JPEGDecompressor, zoom: Int,
        into output: PictureBuffer, judge: (String?) throws(ConversionError) -> Void
    ) throws(ConversionError) {
        let format: PackedFormat = colors == .inks ? .cmyk : .rgb
        let stride = size.width * format.bytesPerPixel
        try pixels.reserve(stride * size.height)
        let warning: String?
        do throws(JPEGError) {
            warning = try decompressor.decompress(
                jpeg, header: header, scale: scale, format: format, stride: stride, to: pixels.room)
        } catch {
            throw .damaged(error.message)
        }
        try judge(warning)
        if colors == .inks { Self.mix(pixels.room, size.area) }
        pixels.setCount(size.area * PackedFormat.rgb.bytesPerPixel)
        (regions[0], used[0]) = (pixels.bytes, pixels.count)
        _ = try converter.convert(regions, bytesUsed: used, zoom: zoom, into: output)
    }

    /// What is seen of the inks, in the same memory. As all programs write them, 255 is none of an ink (Adobe's
    /// Technical Note 5116).
    private static func mix(_ pixels: UnsafeMutableRawBufferPointer, _ count: Int) {
        for pixel in 0..<count {
            let black = Int(pixels[4 * pixel + 3])
            for ink in 0..<3 {
                pixels[3 * pixel + ink] = UInt8((Int(pixels[4 * pixel + ink]) * black + 127) / 255)
            }
        }
    }
}
