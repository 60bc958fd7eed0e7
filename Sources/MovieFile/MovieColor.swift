import BusProtocol
import CaptureCore
import FFmpeg

extension ColorTags {
    init(_ color: ColorDescription) {
        self.init(
            primaries: color.primaries?.code, transferFunction: color.transferFunction?.code,
            matrix: color.matrix?.code, range: color.range == .full ? .full : .limited,
            chromaLocation: color.chromaLocation?.code)
    }
}

extension PixelShape {
    init(_ description: FormatDescription) { self.init(description.extensions.pixelAspectRatio) }

    fileprivate init(_ ratio: FormatExtensions.Ratio) {
        self.init(width: ratio.numerator, height: ratio.denominator)
    }
}

extension VideoSettings {
    /// Of the movie: what is stretched gets other pixels, and what is fitted square ones.
    func pixelShape(of description: FormatDescription) -> PixelShape {
        guard !isFitted else { return .square }
        return PixelShape(
            description.extensions.pixelAspectRatio.stretched(
                from: (description.dimensions.width, description.dimensions.height), to: (width, height)))
    }
}
