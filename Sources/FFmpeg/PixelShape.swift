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

    /// nil: it is not stated.
    init?(_ ratio: AVRational) {
        guard ratio.num > 0, ratio.den > 0 else { return nil }
        self.init(width: Int(ratio.num), height: Int(ratio.den))
    }

    /// Copies it from one track to another, which is to be written. libavformat reads it from the track, or else from
    /// its pictures, and writes that of the pictures.
    static func copy(from stream: UnsafeMutablePointer<AVStream>, to copy: UnsafeMutablePointer<AVStream>) {
        copy.pointee.sample_aspect_ratio = ratio(of: stream)
        copy.pointee.codecpar.pointee.sample_aspect_ratio = ratio(of: stream)
    }

    static func ratio(of stream: UnsafeMutablePointer<AVStream>) -> AVRational {
        let own = stream.pointee.sample_aspect_ratio
        return own.num > 0 ? own : stream.pointee.codecpar.pointee.sample_aspect_ratio
    }

    var ratio: AVRational { AVRational(num: Int32(clamping: width), den: Int32(clamping: height)) }
}
