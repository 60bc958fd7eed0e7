/// Width and height in pixels.
public struct Dimensions: Hashable, Sendable, CustomStringConvertible {
    public var width: Int
    public var height: Int

    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    public var description: String { "\(width)x\(height)" }
    public var area: Int { width * height }
}

/// One plane of a picture within its payload.
public struct PlaneLayout: Hashable, Sendable {
    /// Bytes from the start of the payload.
    public var offset: Int
    /// Bytes from one line to the next; 0 for compressed pictures.
    public var stride: Int
    /// Bytes of the whole plane.
    public var bytes: Int

    public init(offset: Int, stride: Int, bytes: Int) {
        self.offset = offset
        self.stride = stride
        self.bytes = bytes
    }
}

/// What a frame is, and how it lies in memory. For a compressed format there is one plane, whose `bytes` is the room
/// set aside.
public struct FrameLayout: Hashable, Sendable {
    public var description: FormatDescription
    public var planes: [PlaneLayout]

    public init(_ description: FormatDescription, planes: [PlaneLayout]) {
        self.description = description
        self.planes = planes
    }

    /// Of a source that says nothing else (``PixelFormat/defaultExtensions``).
    public init(pixelFormat: PixelFormat, dimensions: Dimensions, planes: [PlaneLayout]) {
        self.init(FormatDescription(pixelFormat: pixelFormat, dimensions: dimensions), planes: planes)
    }

    public var pixelFormat: PixelFormat { description.pixelFormat }
    public var dimensions: Dimensions {
        get { description.dimensions }
        set { description.dimensions = newValue }
    }

    /// Whether frames of the other one are the same pictures, at whatever rate they come.
    public func isSame(as other: FrameLayout) -> Bool {
        var other = other
        other.description.frameDuration = description.frameDuration
        return self == other
    }

    /// Bytes of the payload: all planes with what lies between them.
    public var totalBytes: Int { planes.reduce(0) { max($0, $1.offset + $1.bytes) } }

    /// The layout without padding that this format has at that size; nil for formats whose layout is not known here.
    ///
    /// A compressed format gets room for three bytes a pixel, and at least 64 KiB.
    public static func packed(_ pixelFormat: PixelFormat, _ dimensions: Dimensions) -> FrameLayout? {
        packed(FormatDescription(pixelFormat: pixelFormat, dimensions: dimensions))
    }

    /// The same for pictures of which more is said.
    public static func packed(_ description: FormatDescription) -> FrameLayout? {
        let (pixelFormat, dimensions) = (description.pixelFormat, description.dimensions)
        let (width, height) = (dimensions.width, dimensions.height)
        let (halfWidth, halfHeight) = ((width + 1) / 2, (height + 1) / 2)
        let planes: [(stride: Int, lines: Int)]
        switch pixelFormat {
        case .yuyv, .uyvy: planes = [(halfWidth * 4, height)]
        case .bgr24, .rgb24: planes = [(width * 3, height)]
        case .rgb48: planes = [(width * 6, height)]
        case .nv12, .nv12FullRange: planes = [(width, height), (halfWidth * 2, halfHeight)]
        case .i420: planes = [(width, height), (halfWidth, halfHeight), (halfWidth, halfHeight)]
        case _ where pixelFormat.isCompressed:
            return FrameLayout(
                description,
                planes: [PlaneLayout(offset: 0, stride: 0, bytes: max(width * height * 3, 65536))])
        default:
            guard let samples = pixelFormat.rawSamples else { return nil }
            planes = [(samples.lineBytes(width: width), height)]
        }
        var offset = 0
        var layouts: [PlaneLayout] = []
        for plane in planes {
            layouts.append(PlaneLayout(offset: offset, stride: plane.stride, bytes: plane.stride * plane.lines))
            offset += plane.stride * plane.lines
        }
        return FrameLayout(description, planes: layouts)
    }
}
