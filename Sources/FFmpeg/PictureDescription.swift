import CFFmpeg

/// What a movie states about a picture. It may change from one picture to the next.
public struct PictureDescription: Hashable, Sendable {
    /// Pixels.
    public var width: Int
    public var height: Int
    public var color: ColorTags
    /// Square where nothing states it.
    public var pixelShape: PixelShape
    /// As the picture itself says: EXIF data of JPEG, and H.264's message of the kind. nil: it doesn't.
    public var turn: PictureTurn?

    public init(width: Int, height: Int, color: ColorTags, pixelShape: PixelShape) {
        self.width = width
        self.height = height
        self.color = color
        self.pixelShape = pixelShape
    }

    /// - Parameter shape: what the track states, which counts more than the picture does.
    init(_ frame: UnsafeMutablePointer<AVFrame>, shape: PixelShape?) {
        self.init(
            width: Int(frame.pointee.width), height: Int(frame.pointee.height), color: ColorTags(frame),
            pixelShape: shape ?? PixelShape(frame.pointee.sample_aspect_ratio) ?? .square)
        turn = PictureTurn(of: frame)
    }
}
