public import BusProtocol
public import CaptureCore
import Imaging
import JSON

/// Makes photos' files out of frames of one layout. Owned by one thread; later photos use what the first one made.
public final class PhotoEncoder {
    /// Of the photos, as their pixels lie in the file.
    public let dimensions: Dimensions
    /// Of their thumbnails, unless one is so rich that it has to be smaller to fit; nil: they have none.
    public let thumbnail: Dimensions?

    private let layout: FrameLayout
    private let making: PhotoMaking
    private let way: Way

    private enum Way {
        case jpeg(JPEGPhotoEncoder)
        case pixels(PixelPhotoEncoder)
        case raw
    }

    /// - Throws: `photoFormatUnavailable` {available: {photo, raw}} if no such file can be made of the layout's pixel
    ///   format.
    public init(_ layout: FrameLayout, _ making: PhotoMaking) throws(BusError) {
        let available = Self.available(for: layout.pixelFormat)
        let isAvailable =
            switch making.fileType {
            case .jpeg, .png, .tiff: available.codecs.contains(making.fileType)
            case .dng: !available.raw.isEmpty
            }
        guard isAvailable else { throw Self.unavailable(making.fileType, layout.pixelFormat) }
        let making = making.made(of: layout.description.orientation)
        self.layout = layout
        self.making = making
        switch making.fileType {
        case .jpeg:
            let jpeg = try JPEGPhotoEncoder(layout, making)
            way = .jpeg(jpeg)
            (dimensions, thumbnail) = (jpeg.dimensions, jpeg.thumbnail)
        case .png, .tiff:
            let pixels = try PixelPhotoEncoder(layout, making)
            way = .pixels(pixels)
            (dimensions, thumbnail) = (pixels.dimensions, nil)
        case .dng:
            way = .raw
            dimensions = layout.dimensions
            thumbnail = making.thumbnail.map { DNGWriter.preview(of: layout.dimensions, $0) }
        }
    }

    /// Makes the photo of one frame.
    ///
    /// - Parameters:
    ///   - picture: of the layout that this was made for.
    ///   - facts: what is known of it; its orientation is put in here.
    public func encode(_ picture: PhotoPicture, _ facts: PhotoFacts) throws(PhotoFileError) -> EncodedPhoto {
        guard picture.layout.isSame(as: layout) else {
            throw .failed("the frame is of another layout than the one before")
        }
        var facts = facts
        facts.orientation = making.orientationTag
        switch way {
        case .jpeg(let encoder): return try encoder.encode(picture, facts)
        case .pixels(let encoder): return try encoder.encode(picture, facts)
        case .raw: return try DNGWriter.photo(picture, making, facts)
        }
    }

    /// What photos can be made of frames of a pixel format: kinds of files that show the picture, and formats that can
    /// be kept raw.
    public static func available(for format: PixelFormat) -> (codecs: [PhotoFileType], raw: [PixelFormat]) {
        (PictureConverter.converts(format) ? [.jpeg, .png, .tiff] : [], format.rawPhotoFormats)
    }

    private static func unavailable(_ fileType: PhotoFileType, _ format: PixelFormat) -> BusError {
        let available = Self.available(for: format)
        let choice = fileType == .dng ? "a raw format" : "another format"
        let instead = fileType != .dng && !available.raw.isEmpty ? "a dng can, and " : ""
        return BusError(
            .photoFormatUnavailable,
            "no \(fileType.rawValue) can be made of \(format.name); \(instead)choose \(choice) with device.configure "
                + "if device.formats lists one",
            [
                "available": .object([
                    "photo": .array(available.codecs.map { .string($0.rawValue) }),
                    "raw": .array(available.raw.map { .string($0.name) }),
                ])
            ])
    }
}
