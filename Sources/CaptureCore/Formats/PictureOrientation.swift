public import BusProtocol
public import JSON

/// How a picture is turned: by quarters clockwise, then perhaps with left and right exchanged. There are eight ways.
public struct PictureOrientation: Hashable, Sendable {
    /// Quarters clockwise, 0–3.
    public let quarters: Int
    public let isMirrored: Bool

    public static let upright = PictureOrientation(quarters: 0, isMirrored: false)

    /// - Parameter quarters: any number; whole turns don't count.
    public init(quarters: Int, isMirrored: Bool) {
        self.quarters = quarters & 3
        self.isMirrored = isMirrored
    }

    /// That of the pictures that a subscription asks for.
    public init(_ rendition: Rendition) {
        self.init(quarters: rendition.videoRotationAngle / 90, isMirrored: rendition.isVideoMirrored)
    }

    /// {orientation, mirrored}, as a ``DeviceDescription`` has them; upright where they are absent.
    public init(described json: JSONValue) {
        self.init(
            quarters: Int(clamping: (json["orientation"]?.integer ?? 0) / 90),
            isMirrored: json["mirrored"]?.bool ?? false)
    }

    /// Width becomes height.
    public var swapsSides: Bool { quarters % 2 == 1 }

    /// The size that a picture of this size has when it is turned; the same the other way round.
    public func turned(_ size: Dimensions) -> Dimensions {
        swapsSides ? Dimensions(width: size.height, height: size.width) : size
    }

    /// What puts a picture back that was turned by this.
    public var inverse: PictureOrientation {
        PictureOrientation(quarters: isMirrored ? quarters : -quarters, isMirrored: isMirrored)
    }

    /// Both in one, this one first.
    public func followed(by next: PictureOrientation) -> PictureOrientation {
        PictureOrientation(
            quarters: quarters + (isMirrored ? -next.quarters : next.quarters),
            isMirrored: isMirrored != next.isMirrored)
    }
}
