/// How much the picture is stabilized: AVFoundation's `AVCaptureVideoStabilizationMode`.
public enum VideoStabilizationMode: String, Hashable, Sendable, CaseIterable {
    case off, standard, cinematic
    /// What the device has for it, if it has anything.
    case auto

    /// - Parameter word: of the device's control `videoStabilizationMode`; nil: it has none.
    public init(active word: String?) { self = word.flatMap(Self.init) ?? .off }
}
