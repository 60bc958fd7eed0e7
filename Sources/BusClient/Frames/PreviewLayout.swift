/// How a picture is shown in a view, and where points of the one lie in the other. No bus is asked.
///
/// The picture is turned, then mirrored, then fitted in. Points of the picture are those of the camera's own, unrotated
/// and unmirrored: (0, 0) is its top left, (1, 1) its bottom right. Points of the view are in the view's own units,
/// from its top left.
public struct PreviewLayout: Hashable, Sendable {
    /// AVFoundation's `AVLayerVideoGravity`.
    public enum Gravity: String, Hashable, Sendable, CaseIterable {
        /// All of the picture, with bars where the view has another shape.
        case resizeAspect
        /// All of the view, with what doesn't fit cut off.
        case resizeAspectFill
        /// Both, out of shape.
        case resize
    }

    public struct Size: Hashable, Sendable {
        public var width: Double
        public var height: Double

        public init(width: Double, height: Double) {
            self.width = width
            self.height = height
        }
    }

    public struct Point: Hashable, Sendable {
        public var x: Double
        public var y: Double

        public init(x: Double, y: Double) {
            self.x = x
            self.y = y
        }
    }

    /// Degrees clockwise, as renditions have it.
    public enum Rotation: Int, Hashable, Sendable, CaseIterable {
        case none = 0
        case quarter = 90
        case half = 180
        case threeQuarters = 270
    }

    public var view: Size
    /// The camera's own picture, before it is turned.
    public var picture: Size
    public var gravity: Gravity
    public var rotation: Rotation
    public var isMirrored: Bool
    /// How many times the middle of the camera's picture is enlarged in what is shown (``FrameHeader/zoom``).
    public var zoom: Double

    public init(
        view: Size, picture: Size, gravity: Gravity = .resizeAspectFill, rotation: Rotation = .none,
        isMirrored: Bool = false, zoom: Double = 1
    ) {
        self.view = view
        self.picture = picture
        self.gravity = gravity
        self.rotation = rotation
        self.isMirrored = isMirrored
        self.zoom = zoom
    }

    /// The point of the picture that the view shows there (`captureDevicePointConverted(fromLayerPoint:)`); nil outside
    /// of the picture or the view, and for sizes that are not above 0 or a zoom below 1.
    public func devicePoint(_ point: Point) -> Point? {
        guard let frame, (0...view.width).contains(point.x), (0...view.height).contains(point.y) else { return nil }
        var x = (point.x - frame.left) / frame.width
        let y = (point.y - frame.top) / frame.height
        guard (0...1).contains(x), (0...1).contains(y) else { return nil }
        if isMirrored { x = 1 - x }
        let shown =
            switch rotation {
            case .none: Point(x: x, y: y)
            case .quarter: Point(x: y, y: 1 - x)
            case .half: Point(x: 1 - x, y: 1 - y)
            case .threeQuarters: Point(x: 1 - y, y: x)
            }
        return Point(x: 0.5 + (shown.x - 0.5) / zoom, y: 0.5 + (shown.y - 0.5) / zoom)
    }

    /// Where the view shows a point of the picture (`layerPointConverted(fromCaptureDevicePoint:)`), beyond the view's
    /// bounds if that is cut off; nil outside of the picture, and for sizes that are not above 0 or a zoom below 1.
    public func viewPoint(_ point: Point) -> Point? {
        guard let frame, (0...1).contains(point.x), (0...1).contains(point.y) else { return nil }
        let shown = Point(x: 0.5 + (point.x - 0.5) * zoom, y: 0.5 + (point.y - 0.5) * zoom)
        var turned =
            switch rotation {
            case .none: shown
            case .quarter: Point(x: 1 - shown.y, y: shown.x)
            case .half: Point(x: 1 - shown.x, y: 1 - shown.y)
            case .threeQuarters: Point(x: shown.y, y: 1 - shown.x)
            }
        if isMirrored { turned.x = 1 - turned.x }
        return Point(x: frame.left + turned.x * frame.width, y: frame.top + turned.y * frame.height)
    }

    // Where the turned picture lies in the view.
    private var frame: (left: Double, top: Double, width: Double, height: Double)? {
        let isSideways = rotation == .quarter || rotation == .threeQuarters
        let (width, height) = isSideways ? (picture.height, picture.width) : (picture.width, picture.height)
        guard width > 0, height > 0, view.width > 0, view.height > 0, width.isFinite, height.isFinite,
            view.width.isFinite, view.height.isFinite, zoom >= 1, zoom.isFinite
        else { return nil }
        var (across, down) = (view.width / width, view.height / height)
        switch gravity {
        case .resize: break
        case .resizeAspect: (across, down) = (min(across, down), min(across, down))
        case .resizeAspectFill: (across, down) = (max(across, down), max(across, down))
        }
        return (
            (view.width - width * across) / 2, (view.height - height * down) / 2, width * across, height * down
        )
    }
}

/// The same as AVFoundation's `AVCaptureVideoOrientation`.
public enum VideoOrientation: String, Hashable, Sendable, CaseIterable {
    case portrait, portraitUpsideDown, landscapeRight, landscapeLeft

    /// That of a device that is held so (`UIDeviceOrientation`'s words). One that is turned to the left has its camera
    /// turned to the right; for what isn't known (`faceUp`, `unknown`, …) it is landscapeRight.
    public init(forDeviceOrientation orientation: String) {
        switch orientation {
        case "portrait": self = .portrait
        case "portraitUpsideDown": self = .portraitUpsideDown
        case "landscapeRight": self = .landscapeLeft
        default: self = .landscapeRight
        }
    }
}
