public import JSON

/// What a preset means for one device.
///
/// A size that the device doesn't have is made from a larger one, if there is one: pictures are only scaled down.
public struct PresetResolution: Hashable, Sendable {
    public var preset: SessionPreset
    /// The row of the format table.
    public var formatID: String
    /// How the device is set when nobody else wants anything of it.
    public var format: FormatSelection
    /// The size of the pictures that the session gets: the format's, or a smaller one.
    public var dimensions: Dimensions
    /// The format's own frame duration, to which a preset resets the device's
    /// (`activeVideoMinFrameDuration` and `activeVideoMaxFrameDuration`); nil: the driver doesn't tell.
    public var frameDuration: FrameDuration?

    public init(
        preset: SessionPreset, formatID: String, format: FormatSelection, dimensions: Dimensions,
        frameDuration: FrameDuration?
    ) {
        self.preset = preset
        self.formatID = formatID
        self.format = format
        self.dimensions = dimensions
        self.frameDuration = frameDuration
    }

    /// {preset, activeFormat: {id, pixelFormat, width, height}, width, height, frameDuration}
    public var json: JSONValue {
        .object([
            "preset": .string(preset.rawValue), "activeFormat": format.json(id: formatID),
            "width": JSONValue(dimensions.width), "height": JSONValue(dimensions.height),
            "frameDuration": frameDuration?.json ?? .null,
        ])
    }
}

extension SessionPreset {
    /// What the preset means for a device with that format table; nil: the device doesn't support it, or it leaves the
    /// device as it is (``inputPriority``).
    public func resolve(for formats: [CaptureFormat]) -> PresetResolution? { nil }

    /// True if a session with that preset can have the device: AVFoundation's `supportsSessionPreset`.
    public func isSupported(by formats: [CaptureFormat]) -> Bool {
        self == .inputPriority ? !formats.isEmpty : resolve(for: formats) != nil
    }

    /// The presets that a device supports, in the order of their declaration.
    public static func supported(by formats: [CaptureFormat]) -> [SessionPreset] {
        allCases.filter { $0.isSupported(by: formats) }
    }
}

extension CaptureFormat {
    /// The frame duration that the format has when nobody names one: 30 frames a second, or the nearest that it has.
    /// nil: the driver doesn't tell.
    public var defaultFrameDuration: FrameDuration? {
        FrameRateMatch(.duration(FrameDuration(framesPerSecond: 30)), in: frameRates, present: nil).duration
    }
}
