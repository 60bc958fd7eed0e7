import CaptureCore
import TIFF

/// Makes digital negatives of raw frames (Adobe's DNG 1.4, which readers of 1.1 understand): a small JPEG picture
/// first, what is known of the photo, and below it the samples as the sensor gave them, never turned.
///
/// Samples of more than 8 bits have 16 in the file, and the white level says how many of them are meant.
enum DNGWriter {
    /// What stands in the file for whoever can't develop, if no thumbnail is asked for.
    private static let usualPreview = PhotoThumbnail(maximumSide: 256)

    /// The size of the small picture: half of the raw one's at most, so that nobody takes it for that.
    static func preview(of picture: Dimensions, _ wanted: PhotoThumbnail?) -> Dimensions {
        let half = Dimensions(width: max(1, picture.width / 2), height: max(1, picture.height / 2))
        return (wanted ?? usualPreview).dimensions(of: half)
    }

    /// - Parameter facts: with the orientation that the file is to say.
    static func photo(
        _ picture: PhotoPicture, _ making: PhotoMaking, _ facts: PhotoFacts
    ) throws(PhotoFileError) -> EncodedPhoto {
        let raw = try RawPicture(picture)
        let preview = try RawPreview(
            raw, Self.preview(of: raw.dimensions, making.thumbnail), quality: (making.thumbnail ?? usualPreview).quality
        )
        do throws(TIFFError) {
            return EncodedPhoto(
                bytes: try write(raw, preview, DNGFields(raw: raw, facts: facts)), dimensions: raw.dimensions,
                thumbnail: making.thumbnail == nil ? nil : preview.dimensions)
        } catch {
            throw .failed(error.description)
        }
    }

    private static func write(
        _ raw: RawPicture, _ preview: RawPreview, _ fields: DNGFields
    ) throws(TIFFError) -> [UInt8] {
        let file = try TIFFWriter(reserving: raw.bytes.count + preview.jpeg.count + 8192)
        let exif = try file.writeEXIFDirectory(fields.exif)
        try file.set(fields.preview(preview))
        try file.set(fields.photo)
        try file.set([TIFFField(.exifDirectory, .integer(exif))])
        try file.write(preview.jpeg)
        try file.writeDirectory()
        try file.set(fields.samples)
        try file.write(raw.bytes)
        try file.writeDirectory()
        return file.finish()
    }
}
