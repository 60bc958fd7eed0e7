/// The size that a movie is exported at (`AVAssetExportPreset1280x720`), by its name.
public enum ExportPreset: String, Hashable, Sendable, CaseIterable {
    case size640x480 = "640x480"
    case size960x540 = "960x540"
    case size1280x720 = "1280x720"
    case size1920x1080 = "1920x1080"
    case size3840x2160 = "3840x2160"

    /// Pixels, at most, of a picture that is wider than high.
    public var dimensions: Dimensions {
        switch self {
        case .size640x480: Dimensions(width: 640, height: 480)
        case .size960x540: Dimensions(width: 960, height: 540)
        case .size1280x720: Dimensions(width: 1280, height: 720)
        case .size1920x1080: Dimensions(width: 1920, height: 1080)
        case .size3840x2160: Dimensions(width: 3840, height: 2160)
        }
    }

    /// Pixels, at most, of a picture of that shape: one that is higher than wide has as many.
    public func dimensions(for shape: Dimensions) -> Dimensions {
        let most = dimensions
        return shape.height > shape.width ? Dimensions(width: most.height, height: most.width) : most
    }
}
