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
    ///
    /// A size that the device has is taken before one that is scaled to it, one of the same aspect before one that is
    /// stretched, then the smallest. Among formats of one size those are taken that come nearest to 30 frames a second;
    /// of these uncompressed colour before compressed. `photo` looks at the still pictures that a format can give
    /// (`highResolutionStillImageDimensions`) before the pictures that it streams. Formats that lack colour serve
    /// cameras that have no others.
    public func resolve(for formats: [CaptureFormat]) -> PresetResolution? {
        let best = formats.map(\.pixelFormat.rank).min()
        let usable = formats.enumerated().filter { $0.element.pixelFormat.rank == best }
            .map { PresetCandidate(format: $0.element, index: $0.offset) }
        let chosen: PresetCandidate?
        switch self {
        case .inputPriority:
            chosen = nil
        case .photo:
            chosen = usable.least { [-$0.stillArea, -$0.area] }
        case .high:
            chosen = usable.filter(\.isFluid).least { [-$0.area] } ?? usable.least { [-$0.pixelsPerSecond] }
        case .medium:
            chosen = Self.nearest(to: Dimensions(width: 480, height: 360), in: usable)
        case .low:
            chosen = Self.nearest(to: Dimensions(width: 192, height: 144), in: usable)
        case .cif352x288, .vga640x480, .hd1280x720, .hd1920x1080, .hd4K3840x2160, .iFrame960x540, .iFrame1280x720:
            chosen = dimensions.flatMap { size in
                usable.compactMap { $0.covering(size) }
                    .least { [$0.size == size ? 0 : 1, $0.size.isAspect(of: size) ? 0 : 1, $0.area] }
            }
        }
        return chosen.map {
            PresetResolution(
                preset: self, formatID: $0.format.id,
                format: FormatSelection(pixelFormat: $0.format.pixelFormat, dimensions: $0.size),
                dimensions: dimensions ?? $0.size, frameDuration: $0.format.defaultFrameDuration)
        }
    }

    private static func nearest(to size: Dimensions, in formats: [PresetCandidate]) -> PresetCandidate? {
        formats.map { candidate in
            var candidate = candidate
            candidate.size = candidate.format.nearestSize(to: size)
            return candidate
        }.least { [$0.size.distance(to: size), -$0.area] }
    }

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
    /// The frame duration that the format has when nobody names one: the usual one, or the nearest that it has.
    /// nil: the driver doesn't tell.
    public var defaultFrameDuration: FrameDuration? {
        FrameRateMatch(.duration(.usual), in: frameRates, present: nil).duration
    }
}

/// A row of the format table at one of its sizes, as presets compare them.
private struct PresetCandidate {
    let format: CaptureFormat
    var size: Dimensions
    private let rate: Double
    /// What decides between those that are as good otherwise, lower is better: how far from 30 frames a second, then
    /// the pixel format, then the place in the table.
    let merit: [Double]

    /// 24 frames a second at NTSC's clock: what films have.
    private static let fluidRate = 23.97

    init(format: CaptureFormat, index: Int) {
        self.format = format
        // The largest that a driver tells may be off its own steps.
        size = format.nearestSize(to: format.dimensions)
        // Where the driver doesn't tell, as with grabbers, the source decides, and is a video.
        rate = (format.defaultFrameDuration ?? .usual).framesPerSecond
        merit = [abs(rate - 30), Double(format.pixelFormat.preference), Double(index)]
    }

    var isFluid: Bool { rate >= Self.fluidRate }
    var area: Double { Double(size.width) * Double(size.height) }
    /// Of the largest still picture that can be had with it.
    var stillArea: Double {
        let still = format.traits.highResolutionStillImageDimensions ?? size
        return max(area, Double(still.width) * Double(still.height))
    }
    var pixelsPerSecond: Double { area * min(rate, 30) }

    /// The same at its smallest size that can be scaled down to that one; nil if there is none.
    func covering(_ wanted: Dimensions) -> PresetCandidate? {
        guard let size = format.smallestSize(atLeast: wanted),
            size == wanted || format.pixelFormat.nearestEncoding != nil
        else { return nil }
        var candidate = self
        candidate.size = size
        return candidate
    }
}

extension [PresetCandidate] {
    /// The one with the least key, compared number by number.
    fileprivate func least(by key: (PresetCandidate) -> [Double]) -> PresetCandidate? {
        map { (candidate: $0, key: key($0) + $0.merit) }
            .min { $0.key.lexicographicallyPrecedes($1.key) }?.candidate
    }
}

extension Dimensions {
    /// True if a picture of this size keeps its shape when it is scaled to that one, but for the rounding.
    func isAspect(of other: Dimensions) -> Bool {
        let (a, b) = (Double(width) * Double(other.height), Double(height) * Double(other.width))
        return abs(a - b) <= 0.01 * max(a, b)
    }
}
