import BusProtocol
import CaptureCore
import FFmpeg

extension ReplayMaterial {
    /// What the material states about its pictures in one of its ``formats``.
    ///
    /// What it doesn't state is taken as FFmpeg takes it: BT.601 in video range. Compressed pictures other than JPEG
    /// have the material's colours; grey and RGB are in full range once they are decoded.
    func description(_ selection: FormatSelection) -> FormatDescription {
        var description = FormatDescription(
            pixelFormat: selection.pixelFormat, dimensions: selection.dimensions, orientation: orientation)
        let (own, stated) = (description.color, picture.color)
        var color = own
        color.primaries = stated.primaries.map { ColorPrimaries(code: $0) } ?? own.primaries
        color.transferFunction = stated.transferFunction.map { TransferFunction(code: $0) } ?? own.transferFunction
        let isDecodedLuma = own.matrix == .smpte170m && own.range == .video
        if isDecodedLuma, track.format?.isRGB != true {
            let matrix = stated.matrix.flatMap { YCbCrMatrix(code: $0) }
            // Luma and chroma can't be red, green and blue, whatever a file says.
            if let matrix, matrix != .gbr { color.matrix = matrix }
            color.range = stated.range == .full ? .full : .video
            color.chromaLocation = stated.chromaLocation.flatMap { ChromaLocation(code: $0) }
        }
        description.color = color
        let shape = picture.pixelShape
        if let ratio = FormatExtensions.Ratio(shape.width, shape.height) {
            description.extensions.pixelAspectRatio = ratio
        }
        description.frameDuration = frameDuration
        return description
    }
}
