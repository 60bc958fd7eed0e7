public import JSON

/// The sizes that a camera's still pictures can have at its present rate (`supportedMaxPhotoDimensions`).
public struct StillSizes: Hashable, Sendable {
    /// A format to take a photo in.
    public struct Choice: Hashable, Sendable {
        public var format: CaptureFormat
        public var size: Dimensions

        /// The `activeFormat` of a change.
        public var json: JSONValue {
            if size == format.dimensions { return .string(format.id) }
            return FormatRequest.size(pixelFormat: format.pixelFormat, size).json
        }
    }

    /// Of which such a photo can be made.
    private let formats: [CaptureFormat]
    private let present: FormatSelection

    /// - Parameters:
    ///   - formats: the camera's table.
    ///   - present: how it streams.
    ///   - frameDuration: nil: it has none.
    ///   - settings: of the photo; only what they say of its kinds of files counts.
    public init(
        of formats: [CaptureFormat], present: FormatSelection, frameDuration: FrameDuration?,
        for settings: PhotoSettings = PhotoSettings()
    ) {
        let fitting = formats.filter { format in
            if let frameDuration, !format.has(frameDuration) { return false }
            let (codecs, raws) = (format.pixelFormat.photoCodecs, format.pixelFormat.rawPhotoFormats)
            if settings.withRaw, raws.isEmpty { return false }
            return switch settings.format {
            case .dng?: !raws.isEmpty
            case let wanted?: codecs.contains(wanted)
            case nil: !codecs.isEmpty
            }
        }
        // A camera in colour does not become grey for its size.
        let best = fitting.map(\.pixelFormat.rank).min() ?? 0
        let own = present.pixelFormat.kind == .opaque ? 0 : present.pixelFormat.rank
        let worst = max(own, best, PixelFormat.bayerRGGB8.rank)
        self.formats = fitting.filter { $0.pixelFormat.rank <= worst }
        self.present = present
    }

    /// From the smallest to the largest; of a format that takes any size the largest.
    public var all: [Dimensions] {
        Set(formats.compactMap { $0.largestSize(within: $0.dimensions) }).sorted {
            ($0.area, $0.width) < ($1.area, $1.width)
        }
    }

    /// The format whose pictures are the largest; of several the present one, or one with its pixel format.
    ///
    /// - Parameter limit: they have at most that width and that height; nil: any.
    /// - Returns: nil: all sizes are larger.
    public func largest(within limit: Dimensions? = nil) -> Choice? {
        let choices = formats.compactMap { format in
            format.largestSize(within: limit ?? format.dimensions).map { Choice(format: format, size: $0) }
        }
        let area = choices.map(\.size.area).max()
        let largest = choices.filter { $0.size.area == area }
        return largest.first(where: isPresent)
            ?? largest.first { $0.format.pixelFormat == present.pixelFormat } ?? largest.first
    }

    /// Whether the camera streams so.
    public func isPresent(_ choice: Choice) -> Bool {
        choice.size == present.dimensions && choice.format.pixelFormat == present.pixelFormat
    }
}

extension CaptureFormat {
    /// It can be had at that rate, as far as the camera says what it can.
    fileprivate func has(_ duration: FrameDuration) -> Bool {
        let nearly = 0.0001
        return frameRates.isEmpty
            || frameRates.contains { range in
                duration.seconds > range.minFrameDuration.seconds * (1 - nearly)
                    && duration.seconds < range.maxFrameDuration.seconds * (1 + nearly)
            }
    }

    /// The largest of its sizes with at most that width and that height; nil: all are larger.
    fileprivate func largestSize(within limit: Dimensions) -> Dimensions? {
        func largest(_ limit: Int, _ low: Int, _ high: Int, _ step: Int) -> Int? {
            guard limit >= low else { return nil }
            return low + (min(limit, max(low, high)) - low) / max(1, step) * max(1, step)
        }
        let one = Dimensions(width: 1, height: 1)
        let range = sizes ?? DimensionRange(minimum: dimensions, maximum: dimensions, step: one)
        guard let width = largest(limit.width, range.minimum.width, range.maximum.width, range.step.width),
            let height = largest(limit.height, range.minimum.height, range.maximum.height, range.step.height)
        else { return nil }
        return Dimensions(width: width, height: height)
    }
}
