import CFFmpeg

/// A pixel's width over its height (FFmpeg's sample aspect ratio).
public struct PixelShape: Hashable, Sendable {
    public var width: Int
    public var height: Int

    public static let square = PixelShape(width: 1, height: 1)

    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    var ratio: AVRational { AVRational(num: Int32(clamping: width), den: Int32(clamping: height)) }
}
