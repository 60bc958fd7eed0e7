import BusProtocol

extension DemandDelivery {
    /// What a wish that is served gets from a device that is set so.
    ///
    /// - Parameter orientation: how its pictures have to be turned to be upright.
    init(
        of wish: CaptureDemand.Wish, _ need: CaptureNeed, from setting: StreamSetting,
        _ orientation: PictureOrientation
    ) {
        if case .rendition(let rendition) = wish {
            self.init(
                rendition: rendition, dimensions: rendition.dimensions(from: setting.format.dimensions, orientation),
                frameDuration: setting.frameDuration?.decimated(to: rendition.frameDuration),
                pixelFormat: setting.format.pixelFormat)
            return
        }
        var rendition = Rendition(.native)
        var dimensions = setting.format.dimensions
        if need.isConverting(setting.format), let encoding = need.encoding(from: setting.format.pixelFormat) {
            rendition.encoding = encoding
            if need.hasSize, need.least != dimensions {
                dimensions = need.least
                (rendition.width, rendition.height) = (dimensions.width, dimensions.height)
            }
        }
        var duration = setting.frameDuration
        if setting.format.pixelFormat.isDecimatable, let least = need.rate.minFrameDuration,
            duration.map({ !least.isAtMost($0) }) ?? true
        {
            rendition.frameDuration = least
            duration = duration?.decimated(to: least)
        }
        self.init(
            rendition: rendition, dimensions: dimensions, frameDuration: duration,
            pixelFormat: setting.format.pixelFormat)
    }
}

extension FrameDuration {
    /// The time between frames of which as many are left out as are more than that.
    fileprivate func decimated(to other: FrameDuration?) -> FrameDuration { other.map { max(self, $0) } ?? self }
}

extension Rendition {
    /// The time between frames at its rate; nil: all frames.
    fileprivate var frameDuration: FrameDuration? {
        get { rateMillionths.flatMap { FrameDuration(1_000_000, $0) } }
        set {
            rateMillionths = newValue.map {
                Int(min(max(($0.framesPerSecond * 1_000_000).rounded(), 1), Double(Self.maxRate) * 1_000_000))
            }
        }
    }

    /// The size of its pictures, made from a device's of that size. Even sizes (`Protocol/SPEC.md`, section 9.2) aside.
    fileprivate func dimensions(from device: Dimensions, _ orientation: PictureOrientation) -> Dimensions {
        guard encoding != .native else { return device }
        var size = crop.map { Dimensions(width: $0.width, height: $0.height) } ?? orientation.turned(device)
        if videoRotationAngle % 180 != 0 { (size.width, size.height) = (size.height, size.width) }
        guard let width, let height else { return size }
        func proportional(_ length: Int, _ part: Int, _ whole: Int) -> Int {
            max(1, Int((Double(length) * Double(part) / Double(max(1, whole))).rounded()))
        }
        if isFitted {
            let isNarrow = width > 0 && width < size.width
            if isNarrow { size = Dimensions(width: width, height: proportional(width, size.height, size.width)) }
            let isLow = height > 0 && height < size.height
            if isLow { size = Dimensions(width: proportional(height, size.width, size.height), height: height) }
            return size
        }
        return Dimensions(
            width: width > 0 ? width : proportional(height, size.width, size.height),
            height: height > 0 ? height : proportional(width, size.height, size.width))
    }
}
