/// AVFoundation's `AVCaptureVideoOrientation`: which way up the picture is wanted. A device's own picture is
/// `landscapeRight`.
public enum CaptureOrientation: String, Hashable, Sendable, CaseIterable {
    case portrait, portraitUpsideDown, landscapeRight, landscapeLeft

    /// - Parameter rotationAngle: 0, 90, 180 or 270; anything else is ``landscapeRight``.
    public init(rotationAngle: Int) {
        self = Self.allCases.first { $0.rotationAngle == rotationAngle } ?? .landscapeRight
    }

    /// Degrees clockwise by which the device's picture is turned.
    public var rotationAngle: Int {
        switch self {
        case .landscapeRight: 0
        case .portrait: 90
        case .landscapeLeft: 180
        case .portraitUpsideDown: 270
        }
    }
}
