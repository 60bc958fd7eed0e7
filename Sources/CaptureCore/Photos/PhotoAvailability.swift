// What photos can be made of a camera's pictures.

extension PixelFormat {
    /// What its pictures can be written as; empty: nothing can be made of them.
    public var photoCodecs: [PhotoFileType] { nearestEncoding == nil ? [] : [.jpeg, .png, .tiff] }

    /// As what they can be written as the sensor made them: itself, or nothing.
    public var rawPhotoFormats: [PixelFormat] { rawSamples == nil ? [] : [self] }
}
