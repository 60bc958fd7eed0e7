/// AVFoundation's `AVMediaType`, as far as devices have one.
public enum MediaType: String, Hashable, Sendable, CaseIterable {
    case video, audio
}

/// Where a camera looks: AVFoundation's `AVCaptureDevice.Position`, and V4L2's external.
public enum DevicePosition: String, Hashable, Sendable, CaseIterable {
    case front, back, external, unspecified
}

/// AVFoundation's `AVCaptureDevice.DeviceType`, as far as this system makes them.
public enum DeviceType: String, Hashable, Sendable, CaseIterable {
    case builtInWideAngleCamera, builtInDualCamera, builtInTrueDepthCamera, builtInMicrophone, external, virtual
}

/// What is known of a device without opening it.
public struct DeviceIdentity: Hashable, Sendable {
    /// Opaque, and the same for the same device on the same port.
    public var uniqueID: String
    /// The name for people (`v4l2_capability.card`).
    public var localizedName: String
    public var mediaType: MediaType
    public var type: DeviceType
    public var position: DevicePosition
    /// The node, where there is one (`/dev/video0`).
    public var node: String?
    /// `v4l2_capability.driver`, or `virtual`.
    public var driver: String
    /// `v4l2_capability.bus_info`.
    public var bus: String

    public init(
        uniqueID: String, localizedName: String, mediaType: MediaType = .video, type: DeviceType,
        position: DevicePosition, node: String? = nil, driver: String, bus: String
    ) {
        self.uniqueID = uniqueID
        self.localizedName = localizedName
        self.mediaType = mediaType
        self.type = type
        self.position = position
        self.node = node
        self.driver = driver
        self.bus = bus
    }
}

/// What an opened device can do.
public struct DeviceDescription: Hashable, Sendable {
    public var identity: DeviceIdentity
    public var formats: [CaptureFormat]
    /// Formats that it has for the moment of a photo only: what ``FormatTraits/highResolutionStillImageDimensions``
    /// promises beyond the table.
    public var stillFormats: [CaptureFormat] = []
    public var controls: [CaptureControl]
    /// How its pictures have to be turned to be upright.
    public var orientation: PictureOrientation
    /// What `zoomValue` spans at most; of the service's configuration, not the device's.
    public var zoomLimit = CameraControlMap.defaultMaxZoom

    public init(
        identity: DeviceIdentity, formats: [CaptureFormat], controls: [CaptureControl],
        orientation: PictureOrientation = .upright
    ) {
        self.identity = identity
        self.formats = formats
        self.controls = controls
        self.orientation = orientation
    }

    /// The camera controls that it has in a format of its table; nil: in one that is in no table.
    public func cameraControls(formatID: String?) -> CameraControlMap {
        let format = formats.first { $0.id == formatID }
        return CameraControlMap(
            controls: controls, traits: format?.traits ?? FormatTraits(), zoomLimit: zoomLimit,
            isConvertible: format.map { $0.pixelFormat.nearestEncoding != nil } ?? true, dimensions: format?.dimensions)
    }
}

/// A pixel format at one size: what `VIDIOC_S_FMT` is asked for and answers.
public struct FormatSelection: Hashable, Sendable {
    public var pixelFormat: PixelFormat
    public var dimensions: Dimensions
    /// Which it is of several rows of the format table with this pixel format and size (``CaptureFormat/variant``).
    public var variant: String?

    public init(pixelFormat: PixelFormat, dimensions: Dimensions, variant: String? = nil) {
        self.pixelFormat = pixelFormat
        self.dimensions = dimensions
        self.variant = variant
    }
}
