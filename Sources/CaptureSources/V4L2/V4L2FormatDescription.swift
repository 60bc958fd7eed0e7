import BusProtocol
package import CaptureCore
package import Video4Linux

extension FormatDescription {
    /// What a V4L2 format states about its pictures.
    ///
    /// JPEG pictures are as JFIF has them, whatever the driver says. Grey is in full range unless the driver says
    /// otherwise: sensors give it so, and drivers that say nothing of ranges don't know of them.
    package init(_ format: V4L2Format, pixelFormat: PixelFormat) {
        self.init(
            pixelFormat: pixelFormat, dimensions: Dimensions(width: Int(format.width), height: Int(format.height)))
        guard pixelFormat != .motionJPEG, pixelFormat != .jpeg else { return }
        let stated = format.color
        let isLumaAndChroma = color.matrix != .gbr && color.range == .video
        let isFullRange = stated.statesFullRange ?? (isLumaAndChroma ? stated.lumaIsFullRange : true)
        color.primaries = stated.primariesCode.flatMap { ColorPrimaries(code: $0) }
        color.transferFunction = stated.transferFunctionCode.flatMap { TransferFunction(code: $0) }
        if color.matrix != .gbr { color.matrix = YCbCrMatrix(code: stated.matrixCode) }
        color.range = isFullRange || pixelFormat.isFullRange ? .full : .video
    }
}
