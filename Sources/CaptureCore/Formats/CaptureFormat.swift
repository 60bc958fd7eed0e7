/// The frame rates that a format can have, as frame durations: AVFoundation's `AVFrameRateRange`.
public struct FrameRateRange: Hashable, Sendable {
    /// The shortest duration: the highest rate.
    public var minFrameDuration: FrameDuration
    /// The longest duration: the lowest rate.
    public var maxFrameDuration: FrameDuration
    /// Between them only multiples of this above the shortest; nil for any (`V4L2_FRMIVAL_TYPE_CONTINUOUS`), or for a
    /// single rate.
    public var step: FrameDuration?

    public init(minFrameDuration: FrameDuration, maxFrameDuration: FrameDuration, step: FrameDuration? = nil) {
        self.minFrameDuration = minFrameDuration
        self.maxFrameDuration = maxFrameDuration
        self.step = step
    }

    /// One rate only.
    public init(discrete duration: FrameDuration) {
        self.init(minFrameDuration: duration, maxFrameDuration: duration)
    }
}

/// The sizes of a format that takes more than one: `V4L2_FRMSIZE_TYPE_STEPWISE` and `CONTINUOUS` (whose steps are 1).
public struct DimensionRange: Hashable, Sendable {
    public var minimum: Dimensions
    public var maximum: Dimensions
    /// Steps in pixels from the minimum, at least 1.
    public var step: Dimensions

    public init(minimum: Dimensions, maximum: Dimensions, step: Dimensions) {
        self.minimum = minimum
        self.maximum = maximum
        self.step = step
    }

    /// True if the device takes exactly that size.
    public func contains(_ size: Dimensions) -> Bool {
        func fits(_ value: Int, _ low: Int, _ high: Int, _ step: Int) -> Bool {
            (low...max(low, high)).contains(value) && (value - low) % max(1, step) == 0
        }
        return fits(size.width, minimum.width, maximum.width, step.width)
            && fits(size.height, minimum.height, maximum.height, step.height)
    }
}

/// One row of a device's format table: AVFoundation's `AVCaptureDevice.Format`.
public struct CaptureFormat: Hashable, Sendable {
    /// `f0`, `f1`, … in the order of the table; stable as long as the table is.
    public var id: String
    public var pixelFormat: PixelFormat
    /// The size, or the largest one where `sizes` says that there are more.
    public var dimensions: Dimensions
    /// nil: just `dimensions`.
    public var sizes: DimensionRange?
    /// Empty when the driver doesn't tell (`ENUM_FRAMEINTERVALS` unsupported): then it can't be chosen either.
    public var frameRates: [FrameRateRange]
    /// What the driver calls the pixel format (`v4l2_fmtdesc.description`).
    public var title: String
    /// What is known of it beside that.
    public var traits: FormatTraits
    /// Which it is of several rows with one pixel format and size; nil where there is no other.
    public var variant: String?

    public init(
        id: String, pixelFormat: PixelFormat, dimensions: Dimensions, sizes: DimensionRange? = nil,
        frameRates: [FrameRateRange], title: String = "", traits: FormatTraits = FormatTraits(),
        variant: String? = nil
    ) {
        self.id = id
        self.pixelFormat = pixelFormat
        self.dimensions = dimensions
        self.sizes = sizes
        self.frameRates = frameRates
        self.title = title
        self.traits = traits
        self.variant = variant
    }

    /// Whether a selection means this row; one that names no variant means any.
    public func isRow(of selection: FormatSelection) -> Bool {
        guard pixelFormat == selection.pixelFormat else { return false }
        guard sizes?.contains(selection.dimensions) ?? (dimensions == selection.dimensions) else { return false }
        return selection.variant == nil || selection.variant == variant
    }
}
