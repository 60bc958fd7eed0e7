import CaptureCore
import CaptureSources
import Imaging

/// Finds damaged JPEG pictures, which are counted and not passed on: to nobody, whatever form of them is wanted.
///
/// A picture without its beginning is damaged. One without its end may lack nothing else, as all pictures of some
/// cameras: it is decoded to know, until so many were whole that the camera is known to leave it out. A stream's first
/// picture is decoded, too, and those that follow on one which turned out to be undecodable; all others are believed,
/// since decoding costs much. Used by one thread at a time.
final class JPEGDamageDetector {
    private let layout: FrameLayout
    /// By the source, of pictures that say nothing themselves.
    private let stated: PictureOrientation
    /// Made with the first picture that is decoded.
    private var checker: JPEGChecker?
    /// So many pictures are decoded before others are believed.
    private var doubts = 1
    /// Whole pictures without an end, one after the other: of a camera that leaves it out always.
    private var endless = 0
    /// The same for pictures of another size than the layout's.
    private var other: (dimensions: Dimensions, checker: JPEGChecker)?

    /// Whole pictures in a row after which a camera is believed again.
    private static let doubtsAfterDamage = 30
    /// Pixels of a picture that is larger than its format, as far as one is believed: to find out what is behind a
    /// header takes as much memory as it says.
    private static let mostPixels = 3840 * 2160

    /// nil for other formats.
    ///
    /// - Parameter stated: by the source, of pictures that don't say themselves how they have to be turned; nil: what
    ///   the layout has.
    init?(_ layout: FrameLayout, stated: PictureOrientation? = nil) {
        guard layout.pixelFormat == .motionJPEG || layout.pixelFormat == .jpeg else { return nil }
        self.layout = layout
        self.stated = stated ?? layout.description.orientation
    }

    /// One of its pictures has turned out to be damaged.
    func doubt() {
        doubts = Self.doubtsAfterDamage
        endless = 0
    }

    enum Finding: Hashable {
        case whole
        /// Whole, and of another size, or turned otherwise, than its format says.
        case changed(ActualPictures)
        /// And why.
        case damaged(String)
    }

    func look(at metadata: FrameSlot.Metadata, _ regions: [UnsafeRawBufferPointer]) -> Finding {
        guard let region = regions.first, let used = metadata.bytesUsed.first, used <= region.count else {
            return .damaged("it is longer than its memory")
        }
        let picture = UnsafeRawBufferPointer(rebasing: region[..<used])
        guard JPEGStream.hasStart(picture) else { return .damaged("it doesn't begin as a JPEG picture") }
        let head = JPEGHead(picture)
        let actual = ActualPictures(
            dimensions: head?.dimensions ?? layout.dimensions, orientation: head?.orientation ?? stated)
        if actual.dimensions != layout.dimensions { return look(behind: actual, regions, metadata.bytesUsed) }
        if let why = damage(picture, metadata, regions) { return .damaged(why) }
        return actual.orientation == layout.description.orientation ? .whole : .changed(actual)
    }

    /// Of a picture whose header has another size: it may just be damaged there.
    private func look(
        behind actual: ActualPictures, _ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int]
    ) -> Finding {
        let size = actual.dimensions
        let difference = "it has \(size) pixels instead of \(layout.dimensions)"
        guard max(size.width, size.height) <= 16384, size.area <= max(Self.mostPixels, layout.dimensions.area) else {
            return .damaged(difference)
        }
        if other?.dimensions != size {
            var layout = layout
            layout.dimensions = size
            other = (try? JPEGChecker(layout)).map { (size, $0) }
        }
        guard let other else { return .damaged(difference) }
        do throws(ConversionError) {
            try other.checker.check(regions, bytesUsed: bytesUsed)
            return .changed(actual)
        } catch {
            doubt()
            return .damaged("\(difference), and \(error)")
        }
    }

    /// What is wrong with a picture of its format's size; nil: it is whole.
    private func damage(
        _ picture: UnsafeRawBufferPointer, _ metadata: FrameSlot.Metadata, _ regions: [UnsafeRawBufferPointer]
    ) -> String? {
        let hasEnd = JPEGStream.hasEnd(picture)
        if hasEnd { endless = 0 }
        // Without that, each picture of some cameras would be decoded here.
        if doubts == 0, hasEnd || endless > Self.doubtsAfterDamage { return nil }
        if checker == nil { checker = try? JPEGChecker(layout) }
        do throws(ConversionError) {
            try checker?.check(regions, bytesUsed: metadata.bytesUsed)
            doubts = max(0, doubts - 1)
            if !hasEnd { endless += 1 }
            return nil
        } catch {
            switch error {
            // For lack of memory nothing is known of it.
            case .failed: return nil
            case .damaged(let why):
                doubt()
                return why
            case .truncated:
                doubt()
                return "\(error)"
            }
        }
    }

    /// Gives a whole picture its end if it lacks it, and its slot has room for that.
    func complete(_ slot: UnsafeMutableRawBufferPointer, _ bytesUsed: inout [Int]) {
        guard let used = bytesUsed.first, used <= slot.count,
            let missing = JPEGStream.missingEnd(of: UnsafeRawBufferPointer(rebasing: slot[..<used])),
            used + missing.count <= slot.count
        else { return }
        for index in missing.indices { slot[used + index] = missing[index] }
        bytesUsed[0] = used + missing.count
    }
}
