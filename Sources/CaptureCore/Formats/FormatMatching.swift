extension FormatSelection {
    /// What to ask a device for so that it is set to just this.
    ///
    /// - Parameters:
    ///   - id: the row of the format table, where one is meant.
    ///   - formats: the device's format table.
    public func request(id: String? = nil, in formats: [CaptureFormat]) -> FormatRequest {
        // The id of a row of many sizes means its largest.
        let rows = formats.filter { $0.sizes == nil && $0.isRow(of: self) }
        if let row = rows.first(where: { $0.id == id }) { return .id(row.id) }
        if variant != nil, let row = rows.first { return .id(row.id) }
        return .size(pixelFormat: pixelFormat, dimensions)
    }
}

extension CaptureFormat {
    /// True if the device takes exactly that size in this format.
    func has(_ size: Dimensions) -> Bool { sizes?.contains(size) ?? (dimensions == size) }

    /// The size of this format that is nearest to that one.
    func nearestSize(to size: Dimensions) -> Dimensions {
        guard let sizes, size.width > 0, size.height > 0 else { return dimensions }
        // Beside each side for itself, each side with the other made for the same aspect: a size that is out of range
        // on one side only would lose its aspect otherwise.
        let width = sizes.nearestWidth(to: size.width)
        let height = sizes.nearestHeight(to: size.height)
        let (scaledHeight, halfWidth) = (width * size.height, size.width / 2)
        let (scaledWidth, halfHeight) = (height * size.width, size.height / 2)
        let candidates = [
            Dimensions(width: width, height: height),
            Dimensions(width: width, height: sizes.nearestHeight(to: (scaledHeight + halfWidth) / size.width)),
            Dimensions(width: sizes.nearestWidth(to: (scaledWidth + halfHeight) / size.height), height: height),
        ]
        return candidates.min { $0.distance(to: size) < $1.distance(to: size) } ?? dimensions
    }
}

extension CaptureFormat {
    /// The smallest size of this format that is at least that large on both sides; nil if there is none.
    func smallestSize(atLeast size: Dimensions) -> Dimensions? {
        guard let sizes else {
            return dimensions.width >= size.width && dimensions.height >= size.height ? dimensions : nil
        }
        guard let width = sizes.width(atLeast: size.width), let height = sizes.height(atLeast: size.height) else {
            return nil
        }
        return Dimensions(width: width, height: height)
    }
}

extension DimensionRange {
    fileprivate func width(atLeast width: Int) -> Int? {
        Self.first(from: width, minimum.width, maximum.width, step.width)
    }

    fileprivate func height(atLeast height: Int) -> Int? {
        Self.first(from: height, minimum.height, maximum.height, step.height)
    }

    private static func first(from value: Int, _ low: Int, _ high: Int, _ step: Int) -> Int? {
        if value <= low { return low }
        guard value <= high else { return nil }
        let step = max(1, step)
        let over = (value - low) % step
        let found = over == 0 ? value : value + (step - over)
        return found <= high ? found : nil
    }

    fileprivate func nearestWidth(to width: Int) -> Int {
        Self.nearest(to: width, minimum.width, maximum.width, step.width)
    }

    fileprivate func nearestHeight(to height: Int) -> Int {
        Self.nearest(to: height, minimum.height, maximum.height, step.height)
    }

    private static func nearest(to value: Int, _ low: Int, _ high: Int, _ step: Int) -> Int {
        guard low < high, value > low else { return low }
        let step = max(1, step)
        let steps = (min(value, high) - low + step / 2) / step
        let last = (high - low) / step
        return low + min(steps, last) * step
    }
}

extension Dimensions {
    /// How different two sizes are: by area, and twice as much by aspect. 1: the same.
    func distance(to other: Dimensions) -> Double {
        func ratio(_ a: Double, _ b: Double) -> Double { max(a / b, b / a) }
        let area = ratio(Double(width) * Double(height), Double(other.width) * Double(other.height))
        let aspect = ratio(Double(width) * Double(other.height), Double(other.width) * Double(height))
        return area * aspect * aspect
    }
}

extension PixelFormat {
    /// Which pixel format is taken when the client leaves it open, the present one aside: colour that needs no
    /// decoding, those that lose least first; compressed pictures, each whole in itself; grey and unfinished (Bayer)
    /// ones; what isn't known here; and H.264, whose pictures need each other.
    private static let preferred: [PixelFormat] = [
        .yuyv, .uyvy, .nv12, .i420, .bgr24, .rgb24, .motionJPEG, .jpeg, .grey, .bayerBGGR8, .bayerGBRG8, .bayerGRBG8,
        .bayerRGGB8,
    ]

    /// Lower is better.
    var preference: Int {
        if self == .h264 { return Self.preferred.count + 1 }
        return Self.preferred.firstIndex(of: self) ?? Self.preferred.count
    }
}
