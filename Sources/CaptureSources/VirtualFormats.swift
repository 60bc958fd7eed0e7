import CaptureCore

/// The format table of a virtual camera, and how it chooses from it as a driver would.
enum VirtualFormats {
    static let sizes = [
        Dimensions(width: 320, height: 240), Dimensions(width: 640, height: 360), Dimensions(width: 640, height: 480),
        Dimensions(width: 1280, height: 720), Dimensions(width: 1920, height: 1080),
        Dimensions(width: 3840, height: 2160),
    ]
    /// Sizes in steps, grey only.
    static let steps = DimensionRange(
        minimum: Dimensions(width: 64, height: 48), maximum: Dimensions(width: 1920, height: 1080),
        step: Dimensions(width: 8, height: 8))

    static let initial = FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 1280, height: 720))
    static let initialDuration = FrameDuration(framesPerSecond: 30)

    /// Sizes of H.264, which costs most of all to make.
    static let encodedSizes = sizes.filter { $0.area <= 1920 * 1080 }

    /// With the kernel's descriptions.
    private static let discrete: [(PixelFormat, String)] = [
        (.yuyv, "YUYV 4:2:2"), (.nv12, "Y/UV 4:2:0"), (.bgr24, "24-bit BGR 8-8-8"), (.motionJPEG, "Motion-JPEG"),
        (.bayerRGGB8, "8-bit Bayer RGRG/GBGB"),
    ]

    static let table: [CaptureFormat] = {
        var table: [CaptureFormat] = []
        for (pixelFormat, title) in discrete {
            for size in sizes {
                table.append(
                    CaptureFormat(
                        id: "f\(table.count)", pixelFormat: pixelFormat, dimensions: size,
                        frameRates: durations(size).map { FrameRateRange(discrete: $0) }, title: title))
            }
        }
        table.append(
            CaptureFormat(
                id: "f\(table.count)", pixelFormat: .grey, dimensions: steps.maximum, sizes: steps,
                frameRates: durations(steps.maximum).map { FrameRateRange(discrete: $0) }, title: "8-bit Greyscale"))
        for size in encodedSizes {
            table.append(
                CaptureFormat(
                    id: "f\(table.count)", pixelFormat: .h264, dimensions: size,
                    frameRates: encodedDurations.map { FrameRateRange(discrete: $0) }, title: "H.264"))
        }
        return table
    }()

    private static let encodedDurations = durations(steps.maximum)

    /// The frame durations at a size, shortest first.
    static func durations(_ size: Dimensions) -> [FrameDuration] {
        var rates = [30, 25, 15, 10, 5]
        if size.area <= 1920 * 1080 { rates.insert(60, at: 0) }
        if size.area <= 1280 * 720 { rates.insert(contentsOf: [240, 120], at: 0) }
        return rates.map { FrameDuration(framesPerSecond: $0) }
    }

    /// The durations that the table names for a selection that came from ``nearest(_:)``.
    static func durations(_ selection: FormatSelection) -> [FrameDuration] {
        switch selection.pixelFormat {
        case .grey: durations(steps.maximum)
        case .h264: encodedDurations
        default: durations(selection.dimensions)
        }
    }

    /// What the camera makes of a format: an unknown one becomes the first, a size the nearest
    /// (as the kernel's `v4l2_find_nearest_size`).
    static func nearest(_ selection: FormatSelection) -> FormatSelection {
        let wanted = selection.dimensions
        if selection.pixelFormat == .grey {
            func step(_ value: Int, _ low: Int, _ high: Int, _ step: Int) -> Int {
                low + (min(max(value, low), high) - low) / step * step
            }
            return FormatSelection(
                pixelFormat: .grey,
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
        let isEncoded = selection.pixelFormat == .h264
        let size = (isEncoded ? encodedSizes : sizes).min { distance($0) < distance($1) } ?? initial.dimensions
        if isEncoded { return FormatSelection(pixelFormat: .h264, dimensions: size) }
        let isKnown = discrete.contains { $0.0 == selection.pixelFormat }
        return FormatSelection(pixelFormat: isKnown ? selection.pixelFormat : initial.pixelFormat, dimensions: size)
    }

    /// The nearest duration that the format has.
    static func nearest(_ duration: FrameDuration, _ selection: FormatSelection) -> FrameDuration {
        durations(selection).min { abs($0.seconds - duration.seconds) < abs($1.seconds - duration.seconds) }
            ?? initialDuration
    }
}
