public import CaptureCore

extension FormatDescription {
    /// JPEG pictures of a source that says nothing more.
    public static func jpeg(_ size: Dimensions) -> FormatDescription {
        FormatDescription(pixelFormat: .motionJPEG, dimensions: size)
    }

    /// The same of H.264.
    public static func h264(_ size: Dimensions) -> FormatDescription {
        FormatDescription(pixelFormat: .h264, dimensions: size)
    }
}
