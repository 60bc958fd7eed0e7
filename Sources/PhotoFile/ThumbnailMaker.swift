import BusProtocol
import CaptureCore
import Imaging

/// Makes the thumbnails of photos, so small that they fit beside the other fields. JPEG pictures are decoded no larger
/// than needed.
final class ThumbnailMaker {
    private let layout: FrameLayout
    private let orientation: PictureOrientation
    private var attempts: ArraySlice<Attempt>
    private var converter: PictureConverter
    private let output = PictureBuffer()

    private struct Attempt {
        /// Of the turned picture.
        var dimensions: Dimensions
        var quality: Int
    }

    /// As wished; one that would not fit becomes smaller.
    let dimensions: Dimensions

    /// - Throws: `formatUnsupported`.
    init(
        _ layout: FrameLayout, _ wish: PhotoThumbnail, _ orientation: PictureOrientation
    ) throws(BusError) {
        self.layout = layout
        self.orientation = orientation
        dimensions = wish.dimensions(of: orientation.turned(layout.dimensions))
        let attempts = Self.attempts(dimensions, quality: wish.quality)
        self.attempts = attempts[...]
        converter = try Self.converter(layout, attempts[0], orientation)
    }

    /// The wish, then less of quality, then of size.
    private static func attempts(_ dimensions: Dimensions, quality: Int) -> [Attempt] {
        var attempts = [Attempt(dimensions: dimensions, quality: quality)]
        for lower in [60, 40, 20] where lower < quality {
            attempts.append(Attempt(dimensions: dimensions, quality: lower))
        }
        var smaller = dimensions
        while max(smaller.width, smaller.height) >= 32 {
            smaller = Dimensions(width: max(1, smaller.width / 2), height: max(1, smaller.height / 2))
            attempts.append(Attempt(dimensions: smaller, quality: min(quality, 60)))
        }
        return attempts
    }

    private static func converter(
        _ layout: FrameLayout, _ attempt: Attempt, _ orientation: PictureOrientation
    ) throws(BusError) -> PictureConverter {
        var request = PictureRequest(encoding: .jpeg, dimensions: attempt.dimensions, quality: attempt.quality)
        request.orientation = orientation
        return try PictureConverter(from: layout, to: request)
    }

    /// The thumbnail of a frame, turned as its photo is; nil: none is small enough.
    ///
    /// - Parameter room: the most bytes it may have.
    func make(
        _ picture: PhotoPicture, room: Int
    ) throws(PhotoFileError) -> (jpeg: [UInt8], dimensions: Dimensions)? {
        while let attempt = attempts.first {
            _ = try converting { () throws(ConversionError) in
                try converter.convert(
                    [picture.bytes], bytesUsed: [picture.bytes.count], zoom: picture.zoom, into: output)
            }
            let jpeg = JPEGAssembly.thumbnail(try JPEGParts(output.bytes))
            if jpeg.count <= room { return (jpeg, attempt.dimensions) }
            guard let next = attempts.dropFirst().first else { break }
            do {
                converter = try Self.converter(layout, next, orientation)
            } catch {
                throw .failed(error.message)
            }
            // What was too large for one is for those after it.
            attempts.removeFirst()
        }
        return nil
    }
}

func converting<Result>(
    _ body: () throws(ConversionError) -> Result
) throws(PhotoFileError) -> Result {
    do { return try body() } catch { throw PhotoFileError(error) }
}
