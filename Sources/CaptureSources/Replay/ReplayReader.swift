import BusProtocol
import CaptureCore
import FFmpeg
import Glibc
import Imaging
import LinuxIO
import TurboJPEG

/// One pass through a material, frame by frame. Used by the player's thread alone.
protocol ReplayReader: AnyObject {
    /// Goes on to the next frame; nil at the end.
    func next() throws(SourceError) -> ReplayFrame?
    /// Frames are to be written as this says from now on. The present one comes again as the next.
    func goOn(_ description: FormatDescription)
    /// Writes the present frame into a slot.
    ///
    /// - Returns: false when it is damaged, or has no room there.
    func write(to slot: FrameSlot, _ layout: FrameLayout) -> Bool
}

/// A frame that has its turn.
struct ReplayFrame {
    /// Nanoseconds on the material's own clock; nil: it doesn't say.
    var time: Int64?
    /// As ``FrameSlot/presentationDelay``.
    var presentationDelay: Int64 = 0
    var isDamaged: Bool
    /// nil: the material's.
    var picture: PictureDescription?
}

extension ReplayMaterial {
    /// Begins a pass in one of ``formats``.
    func reader(_ description: FormatDescription) throws(SourceError) -> any ReplayReader {
        let image = Self.image(description)
        guard pictures.isEmpty else { return try PictureReplayReader(pictures, image, description) }
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
    private var image: ImageDescription?
    /// Reads what is stated in pictures that are not decoded; nil: they are.
    private var stored: StoredPictures?
    private var last: ReplayFrame?
    private var isAgain = false

    init(_ path: String, _ reader: MovieReader, _ image: ImageDescription?) {
        self.path = path
        self.reader = reader
        self.image = image
        stored = image == nil ? StoredPictures(reader.track) : nil
    }

    func next() throws(SourceError) -> ReplayFrame? {
        if isAgain {
            isAgain = false
            return last
        }
        do throws(MediaError) {
            last = try reader.next().map { item in
                ReplayFrame(
                    time: item.time, presentationDelay: item.presentationDelay, isDamaged: item.isDamaged,
                    picture: picture)
            }
            return last
        } catch {
            throw ReplayMaterial.unusable(path, error)
        }
    }

    private var picture: PictureDescription? {
        guard stored != nil else { return reader.picture }
        return reader.withPacket { stored?.read($0) }
    }

    func goOn(_ description: FormatDescription) {
        image = ReplayMaterial.image(description)
        isAgain = true
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

/// Pictures, one after the other. Those of another size or orientation than the first one are fitted into its frame,
/// with black around them; those that can't be read are damaged frames.
private final class PictureReplayReader: ReplayReader {
    private let paths: [String]
    private let image: ImageDescription?
    /// That of the first picture.
    private let frame: (dimensions: Dimensions, orientation: PictureOrientation)
    private let decompressor: JPEGDecompressor
    /// What others are fitted into; made for the first one.
    private var canvas: PictureCanvas?
    private let color: ColorDescription
    private let copier = PictureCopier()
    private var index = -1
    private var bytes: [UInt8] = []
    private var reader: MovieReader?
    /// Of the reader's picture.
    private var orientation = PictureOrientation.upright

    /// Of pictures that are fitted into the frame.
    private static let quality = 90

    init(
        _ paths: [String], _ image: ImageDescription?, _ description: FormatDescription
    ) throws(SourceError) {
        self.paths = paths
        self.image = image
        frame = (description.dimensions, description.orientation)
        let isOwn = image == nil || image?.format == .yuv420p
        color =
            isOwn
            ? description.color : FormatDescription(pixelFormat: .i420, dimensions: description.dimensions).color
        do throws(JPEGError) {
            decompressor = try JPEGDecompressor()
        } catch {
            throw SourceError(.noResources, operation: "replay", message: "\(error)")
        }
    }

    func next() throws(SourceError) -> ReplayFrame? {
        index += 1
        guard index < paths.count else { return nil }
        reader = nil
        guard image == nil else { return ReplayFrame(time: nil, isDamaged: !decode()) }
        bytes = (try? File.readAtOnce(paths[index], limit: ReplayMaterial.mostPictureBytes)) ?? []
        let header = bytes.withUnsafeBytes { try? decompressor.header($0) }
        guard let header else { return ReplayFrame(time: nil, isDamaged: true) }
        let size = Dimensions(width: header.width, height: header.height)
        orientation = bytes.withUnsafeBytes { PictureFileOrientation.read($0) }
        if size == frame.dimensions, orientation == frame.orientation {
            return ReplayFrame(time: nil, isDamaged: false)
        }
        bytes = []
        guard decode(), let canvas = try? fitted(), let jpeg = try? canvas.jpeg(quality: Self.quality) else {
            return ReplayFrame(time: nil, isDamaged: true)
        }
        bytes = jpeg
        return ReplayFrame(time: nil, isDamaged: false)
    }

    // Pictures are fitted: their size never changes.
    func goOn(_ description: FormatDescription) {}

    /// Opened and decoded as a movie of one picture.
    ///
    /// - Returns: whether it is whole.
    private func decode() -> Bool {
        guard let picture = try? MovieReader(paths[index], delivers: .pictures), let item = try? picture.next() else {
            return false
        }
        if image != nil {
            orientation = PictureFileOrientation.read(paths[index], limit: ReplayMaterial.mostPictureBytes)
        }
        reader = picture
        return !item.isDamaged
    }

    /// The picture in the frame, as the first one lies there.
    private func fitted() throws(MediaError) -> PictureCanvas? {
        guard let reader else { return nil }
        if canvas == nil { canvas = try PictureCanvas(frame.dimensions, color) }
        guard let canvas else { return nil }
        canvas.clear()
        try canvas.draw(reader, turned: orientation.followed(by: frame.orientation.inverse))
        return canvas
    }

    func write(to slot: FrameSlot, _ layout: FrameLayout) -> Bool {
        guard let region = slot.regions.first, let base = region.baseAddress else { return false }
        guard let image else {
            guard !bytes.isEmpty, bytes.count <= region.count else { return false }
            bytes.withUnsafeBytes { region.copyMemory(from: $0) }
            slot.bytesUsed[0] = bytes.count
            return true
        }
        guard let reader, let planes = ImagePlanes(layout, base, room: region.count) else { return false }
        slot.bytesUsed[0] = layout.totalBytes
        do throws(MediaError) {
            let size = Dimensions(width: reader.track.width, height: reader.track.height)
            if size == frame.dimensions, orientation == frame.orientation {
                try reader.copyPicture(as: image, to: planes)
            } else if let canvas = try fitted() {
                try copier.copy(canvas.planes, canvas.description, as: image, to: planes)
            }
            return true
        } catch {
            return false
        }
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
