import CaptureCore
import Glibc
import Imaging
import TurboJPEG

/// A small JPEG picture of a raw one, for whoever shows files and develops none: each of its pixels is the mean of
/// those that it covers.
struct RawPreview {
    let dimensions: Dimensions
    let isGrey: Bool
    let jpeg: [UInt8]

    init(_ picture: RawPicture, _ dimensions: Dimensions, quality: Int) throws(PhotoFileError) {
        self.dimensions = dimensions
        isGrey = picture.samples.pattern == .grey
        let format: PackedFormat = isGrey ? .gray : .rgb
        let stride = dimensions.width * format.bytesPerPixel
        let (pixels, memory) = (PictureBuffer(), PictureBuffer())
        do throws(ConversionError) {
            try pixels.reserve(stride * dimensions.height)
            try memory.reserve(
                JPEGCompressor.maximumBytes(
                    width: dimensions.width, height: dimensions.height, subsampling: .s420))
        } catch {
            throw PhotoFileError(error)
        }
        pixels.setCount(stride * dimensions.height)
        Self.draw(picture, dimensions, format.bytesPerPixel, pixels.room)
        do throws(JPEGError) {
            let count = try JPEGCompressor().compress(
                pixels.bytes, format: format, width: dimensions.width, height: dimensions.height, stride: stride,
                subsampling: .s420, quality: quality, into: memory.room)
            withExtendedLifetime(pixels) { memory.setCount(count) }
        } catch {
            throw .failed(error.description)
        }
        jpeg = Array(memory.bytes)
    }

    private static func draw(
        _ picture: RawPicture, _ size: Dimensions, _ channels: Int, _ target: UnsafeMutableRawBufferPointer
    ) {
        let (part, planes, bytes) = (picture.middle, picture.samples.planes, picture.bytes)
        let (width, bytesPerSample) = (picture.dimensions.width, picture.bytesPerSample)
        var (sums, counts) = ([0, 0, 0], [0, 0, 0])
        for y in 0..<size.height {
            let lines = covered(y, of: size.height, part.top, part.size.height)
            for x in 0..<size.width {
                for channel in 0..<channels { (sums[channel], counts[channel]) = (0, 0) }
                for line in lines {
                    for column in covered(x, of: size.width, part.left, part.size.width) {
                        let plane = planes[line % 2 * 2 + column % 2]
                        let index = (line * width + column) * bytesPerSample
                        sums[plane] += Int(bytes[index])
                        if bytesPerSample == 2 { sums[plane] += Int(bytes[index + 1]) << 8 }
                        counts[plane] += 1
                    }
                }
                for channel in 0..<channels {
                    let most = counts[channel] * picture.samples.largest
                    target[(y * size.width + x) * channels + channel] = shown(
                        most > 0 ? Double(sums[channel]) / Double(most) : 0)
                }
            }
        }
    }

    /// The columns or lines that one of the preview covers: two at least, so that all colours are among them.
    private static func covered(_ index: Int, of count: Int, _ start: Int, _ length: Int) -> Range<Int> {
        let end = min(length, max((index + 1) * length / count, index * length / count + 2))
        return start + max(0, min(index * length / count, end - 2))..<start + end
    }

    /// Samples count light; screens want them by sRGB's curve (IEC 61966-2-1).
    private static func shown(_ light: Double) -> UInt8 {
        let light = min(max(light, 0), 1)
        return UInt8((255 * (light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055)).rounded())
    }
}
