/// What a session is for, said as a quality: AVFoundation's `AVCaptureSession.Preset`.
///
/// The raw values are the names on the bus. What a preset means for a device is its ``PresetResolution``.
public enum SessionPreset: String, Hashable, Sendable, CaseIterable {
    /// The highest still size of the device.
    case photo
    /// The best format of the device for movies: the largest that is fluid. What a session has that names no preset.
    case high
    /// The size of the device nearest to 480x360.
    case medium
    /// The size of the device nearest to 192x144.
    case low
    case cif352x288 = "352x288"
    case vga640x480 = "640x480"
    case hd1280x720 = "1280x720"
    case hd1920x1080 = "1920x1080"
    case hd4K3840x2160 = "3840x2160"
    /// 960x540; a movie has key frames only, at about 30 Mb/s.
    case iFrame960x540
    /// 1280x720; a movie has key frames only, at about 40 Mb/s.
    case iFrame1280x720
    /// The format that the input's device has, or is given (`activeFormat`), and nothing else.
    case inputPriority

    /// The size that the preset names; nil where it depends on the device.
    public var dimensions: Dimensions? {
        switch self {
        case .photo, .high, .medium, .low, .inputPriority: nil
        case .cif352x288: Dimensions(width: 352, height: 288)
        case .vga640x480: Dimensions(width: 640, height: 480)
        case .hd1280x720, .iFrame1280x720: Dimensions(width: 1280, height: 720)
        case .hd1920x1080: Dimensions(width: 1920, height: 1080)
        case .hd4K3840x2160: Dimensions(width: 3840, height: 2160)
        case .iFrame960x540: Dimensions(width: 960, height: 540)
        }
    }

    /// Bits a second of a movie that has key frames only; nil where the preset says nothing of it.
    public var keyFrameBitRate: Int? {
        switch self {
        case .iFrame960x540: 30_000_000
        case .iFrame1280x720: 40_000_000
        default: nil
        }
    }
}
