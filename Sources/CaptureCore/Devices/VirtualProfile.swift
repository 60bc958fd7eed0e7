/// What a virtual camera is like.
public enum VirtualProfile: String, Hashable, Sendable, CaseIterable {
    /// Every pixel format at sizes up to 3840x2160, and a UVC camera's ranges.
    case plain
    /// The format table and the ranges of a telephone's camera: few formats with ranges of rates, each with a zoom, an
    /// ISO and an exposure range of its own.
    case iphone6
}
