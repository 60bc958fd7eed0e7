import BusProtocol
import CaptureCore

/// The format table of a virtual camera, and how it chooses from it as a driver would.
struct VirtualFormats {
    static let initialDuration = FrameDuration(framesPerSecond: 30)

    let table: [CaptureFormat]
    /// Of photos, beside the table.
    let stills: [CaptureFormat]
    let initial: FormatSelection

    init(_ profile: VirtualProfile, hasFocus: Bool) {
        var table = profile == .plain ? Self.plain : Self.iphone6
        if !hasFocus {
            for index in table.indices { table[index].traits.autoFocusSystem = AutoFocusSystem.none }
        }
        self.table = table
        stills = profile == .plain ? [] : Self.stills(of: table)
        initial = FormatSelection(
            pixelFormat: profile == .plain ? .yuyv : .nv12, dimensions: Dimensions(width: 1280, height: 720))
    }

    // MARK: Choosing

    /// What the camera makes of a format: an unknown one becomes the first, a size the nearest
    /// (as the kernel's `v4l2_find_nearest_size`).
    func nearest(_ selection: FormatSelection) -> FormatSelection {
        if stills.contains(where: { $0.isRow(of: selection) }) { return selection }
        let wanted = selection.dimensions
        let ofKind = table.filter { $0.pixelFormat == selection.pixelFormat }
        let rows = ofKind.isEmpty ? table.filter { $0.pixelFormat == initial.pixelFormat } : ofKind
        if let steps = rows.first?.sizes {
            func step(_ value: Int, _ low: Int, _ high: Int, _ step: Int) -> Int {
                low + (min(max(value, low), high) - low) / step * step
            }
            return FormatSelection(
                pixelFormat: selection.pixelFormat,
                dimensions: Dimensions(
                    width: step(wanted.width, steps.minimum.width, steps.maximum.width, steps.step.width),
                    height: step(wanted.height, steps.minimum.height, steps.maximum.height, steps.step.height)))
        }
        func distance(_ size: Dimensions) -> Int {
            // Widths from a request may be any integer.
            let width = min(max(wanted.width, 0), 1 << 20)
            let height = min(max(wanted.height, 0), 1 << 20)
            return abs(size.width - width) + abs(size.height - height)
        }
        guard let nearest = rows.min(by: { distance($0.dimensions) < distance($1.dimensions) }) else { return initial }
        let same = rows.filter { $0.dimensions == nearest.dimensions }
        let row = same.first { $0.variant == selection.variant } ?? nearest
        return FormatSelection(pixelFormat: row.pixelFormat, dimensions: row.dimensions, variant: row.variant)
    }

    /// The nearest duration that the format has.
    func nearest(_ duration: FrameDuration, _ selection: FormatSelection) -> FrameDuration {
        let row = (table + stills).first { $0.isRow(of: selection) }
        var best: FrameDuration?
        for range in row?.frameRates ?? [] {
            let fitting = min(max(duration, range.minFrameDuration), range.maxFrameDuration)
            let isNearer = best.map {
                abs(fitting.seconds - duration.seconds) < abs($0.seconds - duration.seconds)
            }
            if isNearer ?? true { best = fitting }
        }
        return best ?? Self.initialDuration
    }

    // MARK: A plain camera

    private static let sizes = [
        Dimensions(width: 320, height: 240), Dimensions(width: 640, height: 360), Dimensions(width: 640, height: 480),
        Dimensions(width: 1280, height: 720), Dimensions(width: 1920, height: 1080),
        Dimensions(width: 3840, height: 2160),
    ]
    /// Sizes in steps, grey only.
    private static let steps = DimensionRange(
        minimum: Dimensions(width: 64, height: 48), maximum: Dimensions(width: 1920, height: 1080),
        step: Dimensions(width: 8, height: 8))

    /// Sizes of H.264, which costs most of all to make.
    private static let encodedSizes = sizes.filter { $0.area <= 1920 * 1080 }

    /// Raw ones of more than 8 bits.
    private static let deep: [(PixelFormat, String)] = [
        (.bayerRGGB12, "12-bit Bayer RGRG/GBGB"), (.bayerRGGB10Packed, "10-bit Bayer RGRG/GBGB Packed"),
        (.grey16, "16-bit Greyscale"),
    ]

    /// With the kernel's descriptions.
    private static let discrete: [(PixelFormat, String)] = [
        (.yuyv, "YUYV 4:2:2"), (.nv12, "Y/UV 4:2:0"), (.bgr24, "24-bit BGR 8-8-8"), (.motionJPEG, "Motion-JPEG"),
        (.bayerRGGB8, "8-bit Bayer RGRG/GBGB"),
    ]

    private static let plain: [CaptureFormat] = {
        var table: [CaptureFormat] = []
        func add(
            _ pixelFormat: PixelFormat, _ size: Dimensions, sizes: DimensionRange? = nil, fastest: Dimensions,
            _ title: String
        ) {
            var traits = FormatTraits()
            traits.highResolutionStillImageDimensions = Self.sizes.last
            traits.videoFieldOfView = 60
            traits.supportedVideoStabilizationModes = ["off", "standard", "auto"]
            traits.videoMaxZoomFactor = 4
            traits.videoZoomFactorUpscaleThreshold = 1
            traits.autoFocusSystem = .contrastDetection
            (traits.minISO, traits.maxISO) = (25, 3200)
            (traits.minExposureDuration, traits.maxExposureDuration) = (0.0001, 0.5)
            traits.videoHDRSupported = true
            switch pixelFormat {
            case .yuyv, .nv12, .h264: traits.colorRange = .video
            case .motionJPEG, .grey, .grey16: traits.colorRange = .full
            default: break
            }
            table.append(
                CaptureFormat(
                    id: "f\(table.count)", pixelFormat: pixelFormat, dimensions: size, sizes: sizes,
                    frameRates: durations(fastest).map { FrameRateRange(discrete: $0) }, title: title, traits: traits))
        }
        for (pixelFormat, title) in discrete {
            for size in sizes { add(pixelFormat, size, fastest: size, title) }
        }
        add(.grey, steps.maximum, sizes: steps, fastest: steps.maximum, "8-bit Greyscale")
        for size in encodedSizes { add(.h264, size, fastest: steps.maximum, "H.264") }
        for (pixelFormat, title) in deep {
            for size in encodedSizes { add(pixelFormat, size, fastest: steps.maximum, title) }
        }
        return table
    }()

    /// The frame durations at a size, shortest first.
    private static func durations(_ size: Dimensions) -> [FrameDuration] {
        var rates = [30, 25, 15, 10, 5]
        if size.area <= 1920 * 1080 { rates.insert(60, at: 0) }
        if size.area <= 1280 * 720 { rates.insert(contentsOf: [240, 120], at: 0) }
        return rates.map { FrameDuration(framesPerSecond: $0) }
    }

    // MARK: A telephone's

    private static let iphone6: [CaptureFormat] = {
        var table: [CaptureFormat] = []
        func add(_ size: Dimensions, _ rates: ClosedRange<Int>, variant: String?, _ traits: FormatTraits) {
            for (pixelFormat, range, title) in [
                (PixelFormat.nv12, VideoColorRange.video, "420v"), (.nv12FullRange, .full, "420f"),
            ] {
                var traits = traits
                traits.colorRange = range
                table.append(
                    CaptureFormat(
                        id: "f\(table.count)", pixelFormat: pixelFormat, dimensions: size,
                        frameRates: [
                            FrameRateRange(
                                minFrameDuration: FrameDuration(framesPerSecond: rates.upperBound),
                                maxFrameDuration: FrameDuration(framesPerSecond: rates.lowerBound))
                        ], title: title, traits: traits, variant: variant))
            }
        }
        var traits = FormatTraits()
        traits.supportedVideoStabilizationModes = ["off", "standard", "auto"]
        traits.highResolutionStillImageDimensions = Dimensions(width: 1280, height: 720)
        traits.videoFieldOfView = 54.626
        traits.videoMaxZoomFactor = 49.12
        traits.videoZoomFactorUpscaleThreshold = 1.09
        traits.autoFocusSystem = .contrastDetection
        (traits.minISO, traits.maxISO) = (29, 928)
        (traits.minExposureDuration, traits.maxExposureDuration) = (0.000003, 0.2)
        traits.videoHDRSupported = false
        add(Dimensions(width: 1280, height: 720), 5...240, variant: nil, traits)

        traits.highResolutionStillImageDimensions = Dimensions(width: 3264, height: 1836)
        traits.videoFieldOfView = 58.040
        traits.videoMaxZoomFactor = 95.62
        traits.videoZoomFactorUpscaleThreshold = 1.55
        traits.autoFocusSystem = .phaseDetection
        (traits.minISO, traits.maxISO) = (29, 464)
        (traits.minExposureDuration, traits.maxExposureDuration) = (0.000013, 0.5)
        traits.videoHDRSupported = true
        add(Dimensions(width: 1920, height: 1080), 2...30, variant: "30", traits)
        traits.minExposureDuration = 0.000008
        add(Dimensions(width: 1920, height: 1080), 2...60, variant: "60", traits)
        return table
    }()

    // What the rows promise beyond the largest of them, at each rate of the rows that do.
    private static func stills(of table: [CaptureFormat]) -> [CaptureFormat] {
        var stills: [CaptureFormat] = []
        for row in table {
            guard let size = row.traits.highResolutionStillImageDimensions, size != row.dimensions else { continue }
            if let known = stills.firstIndex(where: { $0.pixelFormat == row.pixelFormat && $0.dimensions == size }) {
                stills[known].frameRates += row.frameRates
                continue
            }
            var still = row
            (still.id, still.dimensions, still.variant) = ("s\(stills.count)", size, nil)
            stills.append(still)
        }
        return stills
    }
}
