/// A picture as a subscription asks for it: `native[@<rate>]`, or
/// `<format>[:<width>x<height>][@<rate>][;q=<1–100>][;crop=<width>x<height>+<x>+<y>][;rotate=<90|180|270>][;mirror]`
/// `[;fit]`.
///
/// Equal wishes compare equal, however they were spelled: `jpeg@10` and `jpeg@10.0;q=80` are one rendition.
public struct Rendition: Hashable, Sendable {
    public enum Encoding: String, Hashable, Sendable, CaseIterable {
        /// As the device delivers it.
        case native
        case jpeg, bgr, rgb, gray, yuyv, nv12, i420
        /// Samples of 16 bits, the lower byte first.
        case gray16, rgb48
    }

    /// The quality of a `jpeg` whose wish names none.
    public static let defaultQuality = 80

    public var encoding: Encoding
    /// Pixels; nil: the device's, or the crop's; 0: what keeps the aspect. Width and height are given together.
    public var width: Int?
    public var height: Int?
    /// At most so many frames a second, in millionths; nil: all.
    public var rateMillionths: Int?
    /// JPEG quality, 1–100; nil: ``defaultQuality``, which reads back as nil too. Only for `jpeg`.
    public var quality: Int? {
        didSet { if quality == Self.defaultQuality { quality = nil } }
    }

    /// A part of a picture, in pixels from its top left.
    public struct Crop: Hashable, Sendable, CustomStringConvertible {
        public var width: Int
        public var height: Int
        public var x: Int
        public var y: Int

        public init(width: Int, height: Int, x: Int, y: Int) {
            (self.width, self.height, self.x, self.y) = (width, height, x, y)
        }

        /// `800x450+100+50`
        public var description: String { "\(width)x\(height)+\(x)+\(y)" }
    }

    /// The part of the device's upright picture that is taken, before it is turned and made smaller; nil: all.
    public var crop: Crop?
    /// Degrees clockwise by which the picture is turned: 0, 90, 180 or 270. Width and height are those of the turned
    /// picture.
    public var videoRotationAngle = 0
    /// Left and right are exchanged, after the picture is turned.
    public var isVideoMirrored = false
    /// Width and height are upper bounds: the picture keeps the device's aspect, and is never larger than the device's.
    public var isFitted = false

    public init(_ encoding: Encoding) { self.encoding = encoding }

    /// It is available to everybody at any time, and counts for no limit: the device's own picture, and the one that
    /// every program can read.
    public var isAlwaysMade: Bool { self == Rendition(.native) || self == Rendition(.jpeg) }
}

extension Rendition: CustomStringConvertible {
    /// The one spelling that all equal wishes share: no default quality, no trailing zeros, no
    /// rotation by 0.
    public var description: String {
        var text = encoding.rawValue
        if let width, let height { text += ":\(width)x\(height)" }
        if let rateMillionths { text += "@\(Self.decimal(millionths: rateMillionths))" }
        if let quality { text += ";q=\(quality)" }
        if let crop { text += ";crop=\(crop)" }
        if videoRotationAngle != 0 { text += ";rotate=\(videoRotationAngle)" }
        if isVideoMirrored { text += ";mirror" }
        if isFitted { text += ";fit" }
        return text
    }

    private static func decimal(millionths: Int) -> String {
        let whole = String(millionths / 1_000_000)
        let fraction = String(1_000_000 + millionths % 1_000_000).dropFirst()
        guard let last = fraction.lastIndex(where: { $0 != "0" }) else { return whole }
        return "\(whole).\(fraction[...last])"
    }
}
