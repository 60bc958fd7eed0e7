import CaptureCore
import CaptureSources
import Imaging

/// Finds damaged and short frames, which are counted and not passed on.
///
/// Drivers mark the damage that they notice. A compressed picture that is too short is recognized by its first and last
/// bytes.
struct DamageDetector {
    private let isJPEG: Bool
    /// Some cameras leave the end marker out always; where it came once, a picture without it is torn.
    private var hasSeenEnd = false

    init(_ format: PixelFormat) { isJPEG = format == .motionJPEG || format == .jpeg }

    mutating func isWhole(_ metadata: FrameSlot.Metadata, _ regions: [UnsafeRawBufferPointer], _ plan: PayloadPlan)
        -> Bool
    {
        guard !metadata.isCorrupt, plan.count(bytesUsed: metadata.bytesUsed) != nil else { return false }
        guard isJPEG, let region = regions.first, let used = metadata.bytesUsed.first, used <= region.count else {
            return !isJPEG
        }
        let picture = UnsafeRawBufferPointer(rebasing: region[..<used])
        guard JPEGStream.hasStart(picture) else { return false }
        let hasEnd = JPEGStream.hasEnd(picture)
        hasSeenEnd = hasSeenEnd || hasEnd
        return hasEnd || !hasSeenEnd
    }
}
