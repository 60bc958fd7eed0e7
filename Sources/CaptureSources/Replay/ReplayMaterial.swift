import BusProtocol
import CaptureCore
import FFmpeg
import Glibc
import Imaging
import LinuxIO

/// What a replay camera plays: a movie, a picture, or a folder of pictures. Looked at anew at each opening.
struct ReplayMaterial {
    /// How the file, or the folder, was when it was looked at: another one under its path is another material.
    struct Signature: Hashable {
        let device: UInt64
        let inode: UInt64
        let size: Int64
        let changed: Int64
    }

    let path: String
    let signature: Signature
    /// Those of a folder, in the order of their names; empty: it is a movie.
    let pictures: [String]
    /// The movie's, or that of the first picture that can be read.
    let track: VideoTrack
    /// How its pictures have to be turned to be upright: as a movie's track says it, or the first picture of a folder.
    private let ownOrientation: PictureOrientation
    /// The same, or what a movie's pictures say of themselves.
    var orientation: PictureOrientation { picture.turn.map { PictureOrientation($0) } ?? ownOrientation }
    let frameDuration: FrameDuration
    /// What is stated about its pictures: what the track says, until others come.
    var picture: PictureDescription
    var dimensions: Dimensions { Dimensions(width: picture.width, height: picture.height) }

    /// Pictures of a folder.
    static let maximumPictures = 100_000
    /// That may come before one that can be read.
    private static let mostUnreadable = 100
    private static let extensions: Set = ["jpg", "jpeg", "png", "bmp", "webp", "tif", "tiff", "ppm", "pgm", "pnm"]

    /// - Parameter rate: of pictures, and of movies that don't say theirs.
    /// - Throws: `disconnected` where nothing is there that could be played, `notPermitted`.
    init(_ path: String, rate: FrameDuration?) throws(SourceError) {
        self.path = path
        let (signature, isFolder) = try Self.look(path)
        self.signature = signature
        pictures = isFolder ? try Self.pictures(in: path) : Self.isPicture(path) ? [path] : []
        let first: String
        (first, track) = try Self.open(pictures.isEmpty ? [path] : pictures, rate: rate)
        picture = track.picture
        ownOrientation =
            pictures.isEmpty ? track.orientation : PictureFileOrientation.read(first, limit: Self.mostPictureBytes)
        let ownRate = !pictures.isEmpty ? nil : track.frameRate.flatMap { FrameDuration($0.denominator, $0.numerator) }
        frameDuration = Self.plausible(ownRate) ?? rate ?? FrameDuration(framesPerSecond: pictures.isEmpty ? 25 : 10)
    }

    /// The first file that can be read. The pictures before it count as damaged when they have their turn.
    private static func open(
        _ paths: [String], rate: FrameDuration?
    ) throws(SourceError) -> (path: String, track: VideoTrack) {
        var failure: SourceError?
        for path in paths.prefix(mostUnreadable + 1) {
            do throws(MediaError) {
                let reader = try MovieReader(
                    path, delivers: .pictures, frameRate: rate.map { "\($0.denominator)/\($0.numerator)" })
                return (path, reader.track)
            } catch {
                failure = failure ?? unusable(path, error)
            }
        }
        throw failure ?? missing(paths.first ?? "", ENOENT)
    }

    // Some files tell the ticks of their clock.
    private static func plausible(_ duration: FrameDuration?) -> FrameDuration? {
        duration.flatMap { (0.001...3600).contains($0.seconds) ? $0 : nil }
    }

    private static func error(
        _ kind: SourceError.Kind, _ operation: String, errno: Int32 = 0, _ message: String, lack: String
    ) -> SourceError {
        var error = SourceError(kind, operation: operation, errno: errno, message: message)
        error.lack = lack
        return error
    }

    static func look(_ path: String) throws(SourceError) -> (Signature, isFolder: Bool) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw missing(path, errno) }
        let kind = status.st_mode & S_IFMT
        // A pipe or a device could hold up whoever opens it.
        guard kind == S_IFREG || kind == S_IFDIR else {
            throw error(
                .disconnected, "open", errno: EINVAL, "\(path) is neither a file nor a folder",
                lack: "the path is neither a movie nor a folder")
        }
        guard access(path, R_OK) == 0 else { throw missing(path, errno) }
        let signature = Signature(
            device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
            changed: Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec))
        return (signature, kind == S_IFDIR)
    }

    private static func missing(_ path: String, _ code: Int32) -> SourceError {
        error(
            code == EACCES || code == EPERM ? .notPermitted : .disconnected, "open", errno: code,
            "\(path): \(String(cString: strerror(code)))",
            lack: code == ENOENT || code == ENOTDIR ? "its file is missing" : "its file can't be opened")
    }

    static func unusable(_ path: String, _ error: MediaError) -> SourceError {
        Self.error(
            .disconnected, "replay", "\(path) can't be played: \(error)", lack: "its file can't be played")
    }

    private static func pictures(in folder: String) throws(SourceError) -> [String] {
        guard let directory = opendir(folder) else { throw missing(folder, errno) }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory), names.count < maximumPictures {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if !name.hasPrefix("."), isPicture(name) { names.append(name) }
        }
        guard !names.isEmpty else {
            throw error(
                .disconnected, "replay", "\(folder) has no pictures", lack: "its folder has no pictures")
        }
        return names.sorted { isBefore($0, $1) }.map { "\(folder)/\($0)" }
    }

    private static func isPicture(_ name: String) -> Bool {
        guard let dot = name.lastIndex(of: ".") else { return false }
        return extensions.contains(name[name.index(after: dot)...].lowercased())
    }

    /// Of one picture.
    static let mostPictureBytes = 256 << 20

    /// `f2.jpg` before `f10.jpg`: digits count as numbers.
    static func isBefore(_ left: String, _ right: String) -> Bool {
        var (a, b) = (Array(left.utf8)[...], Array(right.utf8)[...])
        func number(_ text: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
            let digits = text.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            text = text.dropFirst(digits.count)
            return digits.drop { $0 == UInt8(ascii: "0") }
        }
        while let first = a.first, let second = b.first {
            let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
            if digits.contains(first), digits.contains(second) {
                let (one, other) = (number(&a), number(&b))
                if one.count != other.count { return one.count < other.count }
                if one != other { return one.lexicographicallyPrecedes(other) }
            } else {
                if first != second { return first < second }
                a = a.dropFirst()
                b = b.dropFirst()
            }
        }
        // What differs in leading zeros only keeps an order, too.
        return a.isEmpty && b.isEmpty ? left < right : a.isEmpty
    }

    // MARK: Formats

    /// The formats that it can be played in, the one that costs least first: as stored, then decoded.
    var formats: [CaptureFormat] {
        var choices: [(PixelFormat, String)] = []
        switch track.codec {
        case .motionJPEG where pictures.isEmpty || isJPEGThroughout: choices.append((.motionJPEG, "Motion-JPEG"))
        case .h264: choices.append((.h264, "H.264"))
        default: break
        }
        choices.append(decoded)
        return choices.enumerated().map { index, choice in
            CaptureFormat(
                id: "f\(index)", pixelFormat: choice.0, dimensions: dimensions,
                frameRates: [FrameRateRange(discrete: frameDuration)], title: choice.1)
        }
    }

    private var isJPEGThroughout: Bool {
        pictures.allSatisfy { $0.lowercased().hasSuffix(".jpg") || $0.lowercased().hasSuffix(".jpeg") }
    }

    /// What decoded pictures become: what they are where that is a camera's format, else the nearest.
    private var decoded: (PixelFormat, String) {
        guard let format = track.format else { return (.nv12, "Y/UV 4:2:0") }
        switch format {
        case .yuv420p: return (.i420, "Planar YUV 4:2:0")
        case .yuyv422: return (.yuyv, "YUYV 4:2:2")
        case .uyvy422: return (.uyvy, "UYVY 4:2:2")
        default: break
        }
        if format == .rgb24 { return (.rgb24, "24-bit RGB 8-8-8") }
        if format.isRGB { return (.bgr24, "24-bit BGR 8-8-8") }
        return format.isGray ? (.grey, "8-bit Greyscale") : (.nv12, "Y/UV 4:2:0")
    }

    /// What a format's pictures are to FFmpeg; nil for one that is stored so.
    static func image(_ description: FormatDescription) -> ImageDescription? {
        let format: ImageFormat
        switch description.pixelFormat {
        case .i420: format = .yuv420p
        case .yuyv: format = .yuyv422
        case .uyvy: format = .uyvy422
        case .nv12: format = .nv12
        case .bgr24: format = .bgr24
        case .rgb24: format = .rgb24
        case .grey: format = .gray8
        default: return nil
        }
        return ImageDescription(
            format, width: description.dimensions.width, height: description.dimensions.height,
            range: description.color.range == .full ? .full : .limited,
            matrix: ColorMatrix(code: description.color.matrix?.code))
    }
}
