import ArgumentParser
import Glibc

/// The file names of photos, from the value of `-o`: a file, a pattern with `%s` for the camera's id and `%d` for the
/// photo's number, a folder, or standard output.
struct PhotoFileNames {
    /// The properties of a photo that its name may contain.
    struct Photo {
        /// Its camera's id.
        var device: String
        /// Which it is of this camera's, from 1, over all that are taken.
        var number: Int
        /// When it was taken; nanoseconds since 1970.
        var realtime: Int64
        /// `jpeg` or `dng`.
        var fileType: String
    }

    /// How many photos there may be of one name.
    struct Extent: Equatable {
        /// There is more than one camera.
        var hasSeveralDevices = false
        /// Of each camera; nil: nobody knows.
        var count: Int? = 1
    }

    private enum Naming: Equatable {
        case standardOutput
        /// A folder, with its '/' at the end or empty, for names of their own.
        case folder(String)
        case pattern(FileNamePattern)
        /// Gets `-DEVICE` and `-NUMBER` before its ending where there are several.
        case name(String)
    }

    private let naming: Naming
    private let isSpecial: @Sendable (String) -> Bool

    /// - Parameters:
    ///   - output: what `-o` says; nil: the folder that one is in.
    ///   - isFolder: whether there is a folder of that name.
    ///   - isSpecial: whether there is something of that name that is no regular file: it gets no ending.
    /// - Throws: `ValidationError` for a pattern that can't be one, and for an ending of something else.
    init(
        _ output: String?, isFolder: (String) -> Bool = MovieFileNames.isFolder,
        isSpecial: @escaping @Sendable (String) -> Bool = { AtomicFile.isSpecial($0) }
    ) throws {
        self.isSpecial = isSpecial
        guard let output else {
            naming = .folder("")
            return
        }
        if output == "-" {
            naming = .standardOutput
        } else if output.hasSuffix("/") || isFolder(output) {
            naming = .folder(output.hasSuffix("/") ? output : output + "/")
        } else {
            let pattern = try FileNamePattern(reading: output)
            let isPattern = pattern.isSeries || pattern.namesDevice
            naming = isPattern ? .pattern(pattern) : .name(pattern.name(0))
            // What is there and takes bytes may be called as it likes.
            if !isSpecial(output), let ending = MediaFileExtensions.foreign(output, beside: MediaFileExtensions.photos)
            {
                throw ValidationError(
                    "Photos are JPEG, DNG, PNG or TIFF. Use the extension .jpg, .dng, .png or .tiff, not .\(ending).")
            }
        }
    }

    var isStandardOutput: Bool { naming == .standardOutput }

    /// `jpeg`, `dng`, `png` or `tiff`, if the name's ending says so.
    var fileType: String? {
        let name: String
        switch naming {
        case .standardOutput, .folder: return nil
        case .name(let text): name = text
        case .pattern(let pattern): name = pattern.name(1, device: "x")
        }
        switch MediaFileExtensions.ending(of: name) {
        case "dng": return "dng"
        case "png": return "png"
        case "tif", "tiff": return "tiff"
        case "jpg", "jpeg": return "jpeg"
        default: return nil
        }
    }

    /// What is wrong with it for so many photos; nil: each gets a name of its own.
    func flaw(_ extent: Extent) -> String? {
        switch naming {
        case .folder, .name: return nil
        case .standardOutput:
            return extent.hasSeveralDevices || extent.count != 1
                ? "'-o -' takes one photo. Give a file name for several photos." : nil
        case .pattern(let pattern):
            if extent.hasSeveralDevices, !pattern.namesDevice {
                return "For several cameras the name of -o needs %s, which stands for the camera's id."
            }
            return extent.count != 1 && !pattern.isSeries
                ? "For several photos the name of -o needs %d, which stands for their number." : nil
        }
    }

    /// The file of a photo. Not for standard output.
    func path(of photo: Photo, _ extent: Extent) -> String {
        switch naming {
        case .standardOutput: return "-"
        case .folder(let folder):
            return "\(folder)\(photo.device)-\(Self.time(photo.realtime)).\(Self.ending(photo))"
        case .pattern(let pattern): return whole(pattern.name(photo.number, device: photo.device), photo)
        case .name(let name):
            var marks = extent.hasSeveralDevices ? "-\(photo.device)" : ""
            if extent.count != 1 {
                let digits = String(photo.number)
                let width = extent.count.map { String($0).count } ?? 5
                marks += "-" + String(repeating: "0", count: max(0, width - digits.count)) + digits
            }
            return MovieFileNames.marked(whole(name, photo), marks)
        }
    }

    /// The file of a live photo's movie, in the folder of its picture: the same name with another ending, where
    /// programs look for it.
    static func movie(beside photo: String) -> String { name(beside: photo, "mov") }

    /// The same of the DNG of a photo's frame.
    static func raw(beside photo: String) -> String { name(beside: photo, "dng") }

    private static func name(beside photo: String, _ ending: String) -> String {
        let own = MediaFileExtensions.ending(of: photo).map { $0.utf8.count + 1 } ?? 0
        return "\(photo.dropLast(own)).\(ending)"
    }

    // A name without an ending gets the photo's, as a movie's does.
    private func whole(_ name: String, _ photo: Photo) -> String {
        let ending = MediaFileExtensions.ending(of: name)
        return MediaFileExtensions.photos.contains(ending ?? "") || isSpecial(name)
            ? name : "\(name).\(Self.ending(photo))"
    }

    private static func ending(_ photo: Photo) -> String { photo.fileType == "jpeg" ? "jpg" : photo.fileType }

    /// Whether names tell before the photo is taken.
    var areKnown: Bool {
        switch naming {
        case .standardOutput, .folder: false
        case .pattern, .name: true
        }
    }

    /// Refuses a name that is not possible, and a folder that does not exist or that the user can't write, before the
    /// photo is taken.
    ///
    /// - Parameter path: of a file in it.
    static func check(_ path: String) throws {
        if AtomicFile.isSpecial(path), !MovieFileNames.isFolder(path) { return }
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        func refusal(_ subject: String, _ code: Int32) -> Failure {
            Failure(
                status: ExitStatus.refused,
                description: Table.printable("\(subject): \(String(cString: strerror(code)))"))
        }
        if AtomicFile.isTooLong(path) { throw refusal(path, ENAMETOOLONG) }
        guard access(folder, W_OK | X_OK) != 0 else { return }
        throw refusal(folder, errno)
    }

    /// `20260314-091500-123`, as the clocks here go.
    static func time(_ realtime: Int64) -> String {
        var (seconds, parts) = (time_t(realtime / 1_000_000_000), tm())
        localtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 32)
        let length = strftime(&text, text.count, "%Y%m%d-%H%M%S", &parts)
        let thousandths = String(1000 + realtime / 1_000_000 % 1000).dropFirst()
        return String(decoding: text.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self) + "-\(thousandths)"
    }
}
