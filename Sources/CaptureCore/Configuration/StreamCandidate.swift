/// A row of the format table, with what it has to fulfil so far.
struct StreamCandidate {
    let format: CaptureFormat
    /// Its place in the table.
    let index: Int
    /// The size that somebody needs the device itself to have.
    private var size: Dimensions?
    private var least = Dimensions(width: 0, height: 0)
    /// The device's frame duration at most and at least.
    private var longest: FrameDuration?
    private var shortest: FrameDuration?

    /// How much a rate may be off: NTSC's are a thousandth below the whole numbers that people say.
    static let tolerance = 0.002

    init(_ format: CaptureFormat, index: Int) {
        self.format = format
        self.index = index
    }

    /// The device as it is set, which may not change.
    init(pinned setting: StreamSetting, row: CaptureFormat?) {
        let ranges = setting.frameDuration.map { [FrameRateRange(discrete: $0)] } ?? []
        format = CaptureFormat(
            id: setting.formatID ?? row?.id ?? "", pixelFormat: setting.format.pixelFormat,
            dimensions: setting.format.dimensions, frameRates: ranges)
        index = 0
    }

    /// The same, fulfilling that too; nil if it can't.
    func admitting(_ need: CaptureNeed) -> StreamCandidate? {
        var candidate = self
        return candidate.admit(need) ? candidate : nil
    }

    /// The same, at least as fast as that; nil if it can't.
    func reaching(_ duration: FrameDuration) -> StreamCandidate? {
        var candidate = self
        candidate.longest = longest.map { min($0, duration) } ?? duration
        return candidate.hasDuration ? candidate : nil
    }

    private mutating func admit(_ need: CaptureNeed) -> Bool {
        if let id = need.formatID, format.id != id { return false }
        if let native = need.native {
            guard format.pixelFormat == native.pixelFormat, fix(native.dimensions) else { return false }
        }
        if need.needsColour, format.pixelFormat.kind != .colour, format.pixelFormat.kind != .bayer { return false }
        if need.hasSize || need.isConverted || need.output != nil {
            if need.encoding(from: format.pixelFormat) != nil {
                least.width = max(least.width, need.least.width)
                least.height = max(least.height, need.least.height)
            } else {
                guard !need.isConverted, need.output.map({ $0 == format.pixelFormat }) ?? true, fix(need.least) else {
                    return false
                }
            }
        }
        if let limit = need.rate.maxFrameDuration { longest = longest.map { min($0, limit) } ?? limit }
        if !format.pixelFormat.isDecimatable, let limit = need.rate.minFrameDuration {
            shortest = shortest.map { max($0, limit) } ?? limit
        }
        return hasSize && hasDuration
    }

    private mutating func fix(_ wanted: Dimensions) -> Bool {
        guard size.map({ $0 == wanted }) ?? format.has(wanted) else { return false }
        size = wanted
        return true
    }

    private var hasSize: Bool {
        guard let size else { return format.smallestSize(atLeast: least) != nil }
        return size.width >= least.width && size.height >= least.height
    }

    // Where the driver doesn't tell its rates, nobody is refused for one.
    private var hasDuration: Bool {
        guard !format.frameRates.isEmpty, longest != nil || shortest != nil else { return true }
        return format.frameRates.contains { duration(in: $0) != nil }
    }

    /// How the device is set for it.
    ///
    /// - Parameter current: kept where it does.
    func setting(keeping current: StreamSetting?) -> StreamSetting {
        StreamSetting(
            formatID: format.id.isEmpty ? nil : format.id,
            format: FormatSelection(pixelFormat: format.pixelFormat, dimensions: dimensions(keeping: current?.format)),
            frameDuration: duration(keeping: current?.frameDuration))
    }

    private func dimensions(keeping present: FormatSelection?) -> Dimensions {
        if let size { return size }
        if least.width > 0 || least.height > 0 { return format.smallestSize(atLeast: least) ?? format.dimensions }
        // Nobody minds the size.
        if let present, present.pixelFormat == format.pixelFormat, format.has(present.dimensions) {
            return present.dimensions
        }
        return format.nearestSize(to: format.dimensions)
    }

    /// The slowest rate that does for all.
    private func duration(keeping present: FrameDuration?) -> FrameDuration? {
        guard longest != nil || shortest != nil else {
            if let present, format.frameRates.contains(where: { $0.nearest(to: present) == present }) { return present }
            return format.defaultFrameDuration
        }
        let durations = format.frameRates.compactMap { duration(in: $0) }
        guard let limit = longest else { return durations.min() }
        let exact = durations.filter { $0.distance(to: limit) <= Self.tolerance || $0.isWithinCameraUnit(of: limit) }
        return exact.min { $0.distance(to: limit) < $1.distance(to: limit) } ?? durations.max()
    }

    /// The one of the range that comes nearest to the limits without breaking them; nil if there is none.
    private func duration(in range: FrameRateRange) -> FrameDuration? {
        let candidates: [FrameDuration?] =
            if let longest {
                [range.nearest(to: longest), range.longest(upTo: longest)]
            } else {
                [shortest.map { range.nearest(to: $0) }, shortest.flatMap { range.shortest(from: $0) }]
            }
        return candidates.compactMap { $0 }.first { duration in
            (longest.map { duration.isAtMost($0) } ?? true) && (shortest.map { $0.isAtMost(duration) } ?? true)
        }
    }

    /// The largest rate that it reaches at all; nil: not known.
    var fastest: FrameDuration? { format.frameRates.map(\.minFrameDuration).min() }
}

extension FrameDuration {
    /// True if a device with this duration is as fast as that, but for what clocks are off.
    func isAtMost(_ limit: FrameDuration) -> Bool {
        self <= limit || seconds <= limit.seconds * (1 + StreamCandidate.tolerance) || isWithinCameraUnit(of: limit)
    }
}
