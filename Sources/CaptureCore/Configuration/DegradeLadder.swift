/// The steps by which a camera takes less of its bus: JPEG before uncompressed, then a lower rate, then a smaller size.
public enum DegradeLadder {
    /// What is given up with a step.
    public enum Step: String, Hashable, Sendable, CaseIterable {
        /// Compressed, at the same size, and as fast.
        case compress
        /// A lower rate, but not below ``fluidEnough``.
        case slow
        /// A smaller size.
        case shrink
        /// A rate below ``fluidEnough``.
        case crawl
    }

    /// 15 frames a second: slower ones are worse than smaller ones.
    static let fluidEnough = FrameDuration(framesPerSecond: 15)

    /// Rates that are tried where a format has any.
    private static let rates = [120, 100, 90, 60, 50, 30, 25, 24, 20, 15, 10, 5, 2, 1]
        .map { FrameDuration(framesPerSecond: $0) }

    /// All settings that take less than that one, the best first: what to try one after the other when the driver says
    /// that there is no room (`STREAMON`: `ENOSPC`).
    public static func settings(below setting: StreamSetting, in formats: [CaptureFormat]) -> [StreamSetting] {
        var settings: [StreamSetting] = []
        var last = setting
        for step in Step.allCases {
            while let next = next(step, below: last, in: formats) {
                settings.append(next)
                last = next
            }
        }
        return settings
    }

    /// The next setting in that manner, which takes less; nil if there is none.
    static func next(_ step: Step, below setting: StreamSetting, in formats: [CaptureFormat]) -> StreamSetting? {
        let candidates: [StreamSetting] =
            switch step {
            case .compress: compressed(setting, formats)
            case .slow: slower(setting, formats, noSlowerThan: fluidEnough)
            case .shrink: smaller(setting, formats)
            case .crawl: slower(setting, formats, noSlowerThan: nil)
            }
        let bits = setting.bitRate
        return candidates.first { $0.bitRate < bits * 0.999 }
    }

    private static func compressed(_ setting: StreamSetting, _ formats: [CaptureFormat]) -> [StreamSetting] {
        guard !setting.format.pixelFormat.isCompressed else { return [] }
        return formats.filter {
            [.motionJPEG, .jpeg].contains($0.pixelFormat) && $0.has(setting.format.dimensions)
        }.compactMap { format in
            self.setting(format, setting.format.dimensions, reaching: setting.frameDuration)
        }
    }

    /// The next lower rate, in whatever row of the table this pixel format and size have it.
    private static func slower(
        _ setting: StreamSetting, _ formats: [CaptureFormat], noSlowerThan limit: FrameDuration?
    ) -> [StreamSetting] {
        guard let present = setting.frameDuration else { return [] }
        let rows = formats.filter {
            $0.pixelFormat == setting.format.pixelFormat && $0.has(setting.format.dimensions)
        }
        let settings = rows.flatMap { row -> [StreamSetting] in
            let durations = row.frameRates.flatMap { range in
                [range.minFrameDuration, range.maxFrameDuration] + rates.map { range.nearest(to: $0) }
            }
            return durations.filter { duration in
                !duration.isAtMost(present) && limit.map { duration.isAtMost($0) } ?? true
            }.map { StreamSetting(formatID: row.id, format: setting.format, frameDuration: $0) }
        }
        return settings.sorted { $0.bitRate > $1.bitRate }
    }

    /// Smaller sizes of the same pixel format and as fast, those of the same aspect first, of these the largest first.
    private static func smaller(_ setting: StreamSetting, _ formats: [CaptureFormat]) -> [StreamSetting] {
        let present = setting.format.dimensions
        let rows = formats.filter { $0.pixelFormat == setting.format.pixelFormat }
        let settings = rows.flatMap { row -> [StreamSetting] in
            let sizes =
                row.sizes == nil
                ? [row.dimensions]
                : [(3, 4), (2, 3), (1, 2), (1, 3), (1, 4)].map { part, whole in
                    row.nearestSize(
                        to: Dimensions(width: present.width * part / whole, height: present.height * part / whole))
                }
            return sizes.filter { $0.width <= present.width && $0.height <= present.height && $0 != present }
                .compactMap { self.setting(row, $0, reaching: setting.frameDuration) }
        }
        func key(_ setting: StreamSetting) -> [Double] {
            let size = setting.format.dimensions
            return [size.isAspect(of: present) ? 0 : 1, -Double(size.width) * Double(size.height)]
        }
        return settings.sorted { key($0).lexicographicallyPrecedes(key($1)) }
    }

    /// A format at the slowest rate that isn't below that one; nil if it has none.
    private static func setting(
        _ format: CaptureFormat, _ size: Dimensions, reaching duration: FrameDuration?
    ) -> StreamSetting? {
        let selection = FormatSelection(pixelFormat: format.pixelFormat, dimensions: size)
        guard let candidate = StreamCandidate(format, index: 0).admitting(CaptureNeed(exactly: selection)),
            let reaching = duration.map({ candidate.reaching($0) }) ?? candidate
        else { return nil }
        return reaching.setting(keeping: nil)
    }
}

extension [CaptureFormat] {
    /// The format table of a device that can be set in no other way: for deciding what it would mean to all.
    public func only(_ setting: StreamSetting) -> [CaptureFormat] {
        let selection = setting.format
        let row =
            first { $0.id == setting.formatID }
            ?? first { $0.pixelFormat == selection.pixelFormat && $0.has(selection.dimensions) }
        return [
            CaptureFormat(
                id: row?.id ?? setting.formatID ?? "", pixelFormat: selection.pixelFormat,
                dimensions: selection.dimensions,
                frameRates: setting.frameDuration.map { [FrameRateRange(discrete: $0)] } ?? [], title: row?.title ?? "")
        ]
    }
}
