import BusProtocol
import CaptureCore

/// What a stream's pictures say of themselves, where their source has said something else of the stream.
struct ActualPictures: Hashable {
    var dimensions: Dimensions
    /// nil: they say nothing.
    var color: ColorDescription?

    func completed(_ description: FormatDescription) -> FormatDescription {
        var description = description
        description.dimensions = dimensions
        if let color { description.color = color }
        return description
    }
}
