import BusProtocol
import CaptureCore
import Imaging

/// Decodes JPEG pictures of a ``LivePhotoBuffer``. Used by one thread at a time.
final class LivePhotoDecoder {
    /// Of what it makes.
    let layout: FrameLayout
    private let converter: PictureConverter
    private let buffer = PictureBuffer()
    // What a picture is given in: made once.
    private var regions = [UnsafeRawBufferPointer(start: nil, count: 0)]
    private var used = [0]
    /// Why the last one that was damaged could not be decoded.
    private(set) var damage: String?
    /// That which the buffer has; nil: none.
    private var decoded: UInt64?

    /// Pixels of a movie's longer side, at most.
    private static let longestSide = 1920

    private init(
        _ size: Dimensions, _ encoding: Rendition.Encoding, _ wanted: Dimensions, frameDuration: FrameDuration? = nil
    ) throws(BusError) {
        var source = FrameLayout(
            pixelFormat: .jpeg, dimensions: size, planes: [PlaneLayout(offset: 0, stride: 0, bytes: size.area)])
        source.description.frameDuration = frameDuration
        converter = try PictureConverter(from: source, to: PictureRequest(encoding: encoding, dimensions: wanted))
        layout = converter.outputLayout
    }

    /// For a movie.
    ///
    /// - Parameter pictures: those that come.
    static func ofMovie(_ pictures: FormatDescription) throws(BusError) -> LivePhotoDecoder {
        let size = pictures.dimensions
        return try LivePhotoDecoder(size, .i420, movieSize(size), frameDuration: pictures.frameDuration)
    }

    /// Grey and as small as the decoder makes them by itself.
    static func small(_ size: Dimensions) throws(BusError) -> LivePhotoDecoder {
        try LivePhotoDecoder(
            size, .gray, Dimensions(width: (size.width + 7) / 8, height: (size.height + 7) / 8))
    }

    /// The camera's, but no longer than 1920 pixels, and even.
    static func movieSize(_ size: Dimensions) -> Dimensions {
        let scale = min(1, Double(longestSide) / Double(max(size.width, size.height, 1)))
        func side(_ length: Int) -> Int {
            scale < 1 ? max(2, Int((Double(length) * scale / 2).rounded()) * 2) : max(2, length & ~1)
        }
        return Dimensions(width: side(size.width), height: side(size.height))
    }

    /// The size of the movie of pictures that are larger; nil: they aren't.
    static func smaller(_ size: Dimensions) -> Dimensions? {
        max(size.width, size.height) > longestSide ? movieSize(size) : nil
    }

    /// - Parameter number: pictures of one number are the same, and are decoded once.
    /// - Returns: nil: it is damaged. Good until the next call.
    func decode(_ jpeg: UnsafeRawBufferPointer, number: UInt64) -> UnsafeRawBufferPointer? {
        if decoded == number { return buffer.bytes }
        decoded = nil
        (regions[0], used[0]) = (jpeg, jpeg.count)
        do throws(ConversionError) {
            _ = try converter.convert(regions, bytesUsed: used, into: buffer)
        } catch {
            damage = "\(error)"
            return nil
        }
        decoded = number
        return buffer.bytes
    }
}
