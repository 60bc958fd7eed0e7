import BusProtocol
import CaptureCore

/// What a stream's pictures say of themselves, where their source has said something else of the stream.
struct ActualPictures: Hashable {
    var dimensions: Dimensions
    /// nil: they say nothing.
    var color: ColorDescription?
    /// The same.
    var orientation: PictureOrientation?
    /// The same.
    var pixelAspectRatio: FormatExtensions.Ratio?

    func completed(_ description: FormatDescription) -> FormatDescription {
        var description = description
        description.dimensions = dimensions
        if let color { description.color = color }
        if let orientation { description.orientation = orientation }
        if let pixelAspectRatio { description.extensions.pixelAspectRatio = pixelAspectRatio }
        return description
    }
}
