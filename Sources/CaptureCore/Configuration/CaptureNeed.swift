import BusProtocol

/// What a wish needs of the device, said in one way for all wishes.
struct CaptureNeed {
    /// The row of the format table.
    var formatID: String?
    /// What the device itself must deliver.
    var native: FormatSelection?
    /// Pictures of that size or larger, which are scaled down; a side of 0: any.
    var least = Dimensions(width: 0, height: 0)
    /// What the pictures are to be made into.
    var output: PixelFormat?
    /// Pictures are made, not passed on, so that the device's must be such that something can be made of them.
    var isConverted = false
    var needsColour = false
    var rate = FrameDurationBounds()
    /// The rate that it gets as far as those allow who come first.
    var softRate: FrameDuration?

    /// What ``CaptureDemand/Wish/nothing`` needs.
    static let nothing = CaptureNeed()

    /// The device itself in that format.
    init(exactly format: FormatSelection) { native = format }

    private init() {}
}

extension CaptureNeed {
    /// nil: a preset that no format of the device has.
    init?(_ wish: CaptureDemand.Wish, in table: FormatTable) {
        switch wish {
        case .nothing:
            break
        case .format(let selection, let id, let durations):
            formatID = id
            native = selection
            rate = durations ?? FrameDurationBounds()
            if rate.minFrameDuration != rate.maxFrameDuration { softRate = rate.minFrameDuration }
        case .size(let size, let pixelFormat, let duration):
            least = size
            output = pixelFormat
            needsColour = table.hasColour && (pixelFormat.map { $0.kind == .colour || $0.kind == .bayer } ?? true)
            if let duration { rate = FrameDurationBounds(constant: duration) }
        case .preset(.inputPriority):
            break
        case .preset(let preset):
            guard let resolution = table.resolution(of: preset) else { return nil }
            least = resolution.dimensions
            needsColour = table.hasColour
            rate.minFrameDuration = resolution.frameDuration
            softRate = resolution.frameDuration
        case .rendition(let rendition):
            guard rendition.encoding != .native else { break }
            isConverted = true
            if let crop = rendition.crop {
                // The part of the picture has to be there; what is made of it is no larger.
                least = table.orientation.turned(
                    Dimensions(width: crop.x + crop.width, height: crop.y + crop.height))
                break
            }
            guard !rendition.isFitted else { break }
            let turn = table.orientation.followed(by: PictureOrientation(rendition))
            least = turn.turned(Dimensions(width: rendition.width ?? 0, height: rendition.height ?? 0))
        }
    }

    /// Pictures of the device are large enough, and are to be of another size or made into something else.
    func isConverting(_ setting: FormatSelection) -> Bool {
        isConverted || hasSize && least != setting.dimensions || output.map { $0 != setting.pixelFormat } ?? false
    }

    /// What its pictures are made into where they aren't passed on; nil: nothing that it could use can be made of
    /// those.
    func encoding(from pixelFormat: PixelFormat) -> Rendition.Encoding? {
        guard let nearest = pixelFormat.nearestEncoding else { return nil }
        guard let output else { return nearest.canMake(least) ? nearest : .bgr }
        return output.renditionEncoding.flatMap { $0.canMake(least) ? $0 : nil }
    }

    var hasSize: Bool { least.width > 0 || least.height > 0 }
}

extension Rendition.Encoding {
    /// Pixels that share their colour come in pairs (`Protocol/SPEC.md`, section 9.2).
    fileprivate func canMake(_ size: Dimensions) -> Bool {
        switch self {
        case .yuyv, .nv12, .i420: size.width % 2 == 0 && size.height % 2 == 0
        case .native, .jpeg, .bgr, .rgb, .gray, .gray16, .rgb48: true
        }
    }
}

/// A device's format table with what is asked of it again and again.
struct FormatTable {
    let formats: [CaptureFormat]
    let hasColour: Bool
    /// How the device's pictures have to be turned to be upright.
    let orientation: PictureOrientation
    private let resolutions: [SessionPreset: PresetResolution]

    /// - Parameter demands: whose presets are to be known.
    init(_ formats: [CaptureFormat], _ orientation: PictureOrientation, for demands: [CaptureDemand]) {
        self.formats = formats
        self.orientation = orientation
        hasColour = formats.contains { $0.pixelFormat.kind == .colour || $0.pixelFormat.kind == .bayer }
        var resolutions: [SessionPreset: PresetResolution] = [:]
        for demand in demands {
            if case .preset(let preset) = demand.wish, resolutions[preset] == nil {
                resolutions[preset] = preset.resolve(for: formats)
            }
        }
        self.resolutions = resolutions
    }

    func resolution(of preset: SessionPreset) -> PresetResolution? { resolutions[preset] }

    /// The row that a device is set to; nil if its format is in none.
    func row(of setting: StreamSetting) -> CaptureFormat? {
        let fitting = formats.filter {
            $0.pixelFormat == setting.format.pixelFormat && $0.has(setting.format.dimensions)
        }
        return fitting.first { $0.id == setting.formatID } ?? fitting.first
    }
}
