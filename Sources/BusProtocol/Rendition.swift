/// A picture as a subscription asks for it: `native`, or `<format>[:<width>x<height>][@<rate>][;q=<1–100>]`.
public struct Rendition: Hashable, Sendable {
    public enum Encoding: String, Hashable, Sendable, CaseIterable {
        /// As the device delivers it.
        case native
        case jpeg, bgr, rgb, gray, yuyv, nv12, i420
    }

    public var encoding: Encoding
    /// Pixels; nil: the device's; 0: what keeps the aspect. Width and height are given together.
    public var width: Int?
    public var height: Int?
    /// At most so many frames a second, in millionths; nil: all.
    public var rateMillionths: Int?
    /// JPEG quality, 1–100; nil: 80. Only for `jpeg`.
    public var quality: Int?

    public init(_ encoding: Encoding) { self.encoding = encoding }
}
