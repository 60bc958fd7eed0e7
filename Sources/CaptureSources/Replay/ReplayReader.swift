import CaptureCore
import FFmpeg
import Glibc
import LinuxIO
import TurboJPEG

/// One pass through a material, frame by frame. Used by the player's thread alone.
protocol ReplayReader: AnyObject {
    /// Goes on to the next frame; nil at the end.
    func next() throws(SourceError) -> ReplayFrame?
    /// Writes the present frame into a slot.
    ///
    /// - Returns: false when it is damaged, or has no room there.
    func write(to slot: FrameSlot, _ layout: FrameLayout) -> Bool
}

/// A frame that has its turn.
struct ReplayFrame {
    /// Nanoseconds on the material's own clock; nil: it doesn't say.
    var time: Int64?
    var isDamaged: Bool
}

extension ReplayMaterial {
    /// Begins a pass in one of ``formats``.
    func reader(_ description: FormatDescription) throws(SourceError) -> any ReplayReader {
        let image = Self.image(description)
        guard !isFolder else { return FolderReplayReader(pictures, image) }
        let reader: MovieReader
        do throws(MediaError) {
            reader = try MovieReader(
                path, delivers: image == nil ? .packets : .pictures,
                frameRate: "\(frameDuration.denominator)/\(frameDuration.numerator)")
        } catch {
            throw Self.unusable(path, error)
        }
        guard reader.track == track else {
            throw SourceError(.failed, operation: "replay", message: "\(path) has been replaced; it is opened again")
        }
        return MovieReplayReader(path, reader, image)
    }
}

/// A movie from its beginning to its end.
private final class MovieReplayReader: ReplayReader {
    private let path: String
    private let reader: MovieReader
    private let image: ImageDescription?

    init(_ path: String, _ reader: MovieReader, _ image: ImageDescription?) {
        self.path = path
        self.reader = reader
        self.image = image
    }

    func next() throws(SourceError) -> ReplayFrame? {
        do throws(MediaError) {
            return try reader.next().map { ReplayFrame(time: $0.time, isDamaged: $0.isDamaged) }
        } catch {
            throw ReplayMaterial.unusable(path, error)
        }
    }

    func write(to slot: FrameSlot, _ layout: FrameLayout) -> Bool {
        guard let region = slot.regions.first, let base = region.baseAddress else { return false }
        guard let image else {
            return reader.withPacket { bytes in
                guard !bytes.isEmpty, bytes.count <= region.count else { return false }
                region.copyMemory(from: bytes)
                slot.bytesUsed[0] = bytes.count
                return true
            }
        }
        guard let planes = ImagePlanes(layout, base, room: region.count) else { return false }
        slot.bytesUsed[0] = layout.totalBytes
        return (try? reader.copyPicture(as: image, to: planes)) != nil
    }
}

/// The pictures of a folder, one after the other. Those that can't be read are damaged frames.
private final class FolderReplayReader: ReplayReader {
    private let paths: [String]
    private let image: ImageDescription?
    private var index = -1
    private var bytes: [UInt8] = []
    private var reader: MovieReader?

    /// Of one picture.
    private static let maximumBytes = 256 << 20

    init(_ paths: [String], _ image: ImageDescription?) {
        self.paths = paths
        self.image = image
    }

    func next() throws(SourceError) -> ReplayFrame? {
        index += 1
        guard index < paths.count else { return nil }
        reader = nil
        guard image != nil else {
            bytes = (try? File.readAtOnce(paths[index], limit: Self.maximumBytes)) ?? []
            return ReplayFrame(time: nil, isDamaged: bytes.isEmpty)
        }
        // Opened and decoded as a movie of one picture.
        let picture = try? MovieReader(paths[index], delivers: .pictures)
        guard let picture, let item = try? picture.next() else { return ReplayFrame(time: nil, isDamaged: true) }
        reader = picture
        return ReplayFrame(time: nil, isDamaged: item.isDamaged)
    }

    func write(to slot: FrameSlot, _ layout: FrameLayout) -> Bool {
        guard let region = slot.regions.first, let base = region.baseAddress else { return false }
        guard let image else {
            // One of another size would not be what the format says.
            let isFitting = bytes.withUnsafeBytes { jpeg in
                guard let header = try? JPEGDecompressor().header(jpeg) else { return false }
                return header.width == layout.dimensions.width && header.height == layout.dimensions.height
            }
            guard isFitting, bytes.count <= region.count else { return false }
            bytes.withUnsafeBytes { region.copyMemory(from: $0) }
            slot.bytesUsed[0] = bytes.count
            return true
        }
        guard let reader, let planes = ImagePlanes(layout, base, room: region.count) else { return false }
        slot.bytesUsed[0] = layout.totalBytes
        return (try? reader.copyPicture(as: image, to: planes)) != nil
    }
}

extension ImagePlanes {
    /// The planes of a frame in its slot; nil when they don't fit.
    fileprivate init?(_ layout: FrameLayout, _ base: UnsafeMutableRawPointer, room: Int) {
        guard layout.totalBytes <= room else { return nil }
        self.init()
        for (index, plane) in layout.planes.enumerated() { self[index] = (base + plane.offset, plane.stride) }
    }
}
