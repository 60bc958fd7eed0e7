public import BusProtocol
import JSON

/// Where movies may be written: the capture library, and further folders that the configuration allows.
///
/// Paths only: nothing is looked up or made.
public struct MoviePlace: Hashable, Sendable {
    /// The library's folder, absolute; nil: there is none.
    public var library: String?
    /// Further folders, absolute.
    public var roots: [String]
    /// Media servers, with all that is below.
    public var destinations: [StreamURL]

    /// A file, and the folder by which it is allowed.
    public struct Target: Hashable, Sendable {
        public var path: String
        public var fileType: MovieFileType
        /// nil: it is allowed wherever it is.
        public var root: String?

        public init(path: String, fileType: MovieFileType, root: String?) {
            self.path = path
            self.fileType = fileType
            self.root = root
        }

        /// The file of that name beside it: `belt-cam0.mp4` beside `belt.mp4`.
        public func marked(_ mark: String) -> Target {
            Target(path: MoviePlace.marked(path, mark), fileType: fileType, root: root)
        }
    }

    /// UTF-8 bytes of a file's name, so that there is room for marks, endings, and the files beside it.
    static let maximumName = 200
    static let maximumPath = 1024

    public init(library: String?, roots: [String], destinations: [StreamURL] = []) {
        self.library = library.map(Self.trimmed)
        self.roots = roots.map(Self.trimmed)
        self.destinations = destinations
    }

    /// The server that a client asks for.
    ///
    /// - Throws: `invalidParams`, `pathNotAllowed` {roots}.
    public func stream(_ url: String) throws(BusError) -> StreamURL {
        guard let url = StreamURL(url) else {
            throw .invalidParams("url", "must be rtsp://, srt:// or rtmp:// with a host, without escapes or spaces")
        }
        guard !destinations.contains(where: url.isWithin) else { return url }
        let shown = destinations.map(\.shown)
        let places = shown.isEmpty ? "nowhere" : "to \(shown.joined(separator: ", ")) only"
        throw BusError(
            .pathNotAllowed,
            "Movies may be sent \(places), not to \(url.shown.prefix(256)); [library] in camerabus.toml can allow more "
                + "(destinations).",
            ["roots": JSONValue(shown)])
    }

    /// The folders in which everybody may have files.
    public var folders: [String] { (library.map { [$0] } ?? []) + roots }

    /// The file that a client asks for.
    ///
    /// - Parameters:
    ///   - name: of the file in the library.
    ///   - path: of the file, in the place of the name.
    ///   - fileType: nil: as it ends, else MP4.
    ///   - day: the library's folder of today.
    ///   - newName: without its ending, for who names none.
    ///   - isOwn: it is for the user that the bus runs as, who could write it itself.
    /// - Throws: `invalidParams`, `pathNotAllowed` {roots}.
    public func target(
        name: String?, path: String?, fileType: MovieFileType?, day: String, newName: String, isOwn: Bool
    ) throws(BusError) -> Target {
        guard let path else {
            if let name { try Self.check(name) }
            guard let library else {
                throw .invalidParams(
                    "path", "is needed: this bus has no library ([library] in camerabus.toml, or --state-dir)")
            }
            let (file, type) = try Self.withEnding(name ?? newName, "name", fileType)
            return Target(path: "\(library)/\(day)/\(file)", fileType: type, root: library)
        }
        guard name == nil else { throw .invalidParams("name", "can't be combined with path") }
        let (whole, type) = try Self.withEnding(Self.normal(path), "path", fileType)
        let root = folders.first { Self.contains($0, whole) }
        guard isOwn || root != nil else { throw refusal(path) }
        return Target(path: whole, fileType: type, root: isOwn ? nil : root)
    }

    /// Whether a path leads into a folder, byte for byte, as the kernel compares: two spellings of one letter are two
    /// names.
    public static func contains(_ folder: String, _ path: String) -> Bool {
        path.utf8.starts(with: folder == "/" ? "/".utf8 : "\(folder)/".utf8)
    }

    /// Why a file may not be there.
    public func refusal(_ path: String) -> BusError {
        let places = folders.isEmpty ? "nowhere" : "in \(folders.joined(separator: ", ")) only"
        return BusError(
            .pathNotAllowed,
            "Movies may be written \(places), not to \(path.prefix(256)). Without a path a movie goes into the "
                + "library, from which library.read gets it; [library] in camerabus.toml can allow more folders "
                + "(roots).",
            ["roots": JSONValue(folders)])
    }

    /// `belt-2.mp4` of `belt.mp4` and `2`.
    public static func marked(_ path: String, _ mark: String) -> String {
        let (stem, ending) = split(path)
        return "\(stem)-\(mark)\(ending)"
    }

    /// The file of the next part: `belt-3.mp4` behind `belt-2.mp4`, which is part 2.
    public static func next(_ path: String, part: Int) -> String {
        var (stem, ending) = split(path)
        if part > 1, stem.hasSuffix("-\(part)") { stem.removeLast("-\(part)".count) }
        return "\(stem)-\(part + 1)\(ending)"
    }

    private static func split(_ path: String) -> (stem: String, ending: String) {
        let name = path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return (path, "") }
        return (String(path[..<dot]), String(path[dot...]))
    }

    private static func trimmed(_ path: String) -> String {
        var path = path
        while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }

    private static func check(_ name: String) throws(BusError) {
        guard name.utf8.count <= maximumName else {
            throw .invalidParams("name", "has more than \(maximumName) bytes")
        }
        guard !name.utf8.starts(with: ".".utf8), !name.utf8.contains(UInt8(ascii: "/")), isPlain(name) else {
            throw .invalidParams(
                "name",
                "must be a file name without '/', without '.' at its beginning, without "
                    + "control characters")
        }
    }

    // What follows may make one character with a '/' or a '.', which is none then for whoever looks for characters, but
    // is one for the kernel.
    private static func isPlain(_ text: String) -> Bool {
        let marks = text.utf8.reduce(0) { $0 + ($1 == UInt8(ascii: "/") || $1 == UInt8(ascii: ".") ? 1 : 0) }
        return text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
            && text.reduce(0) { $0 + ($1 == "/" || $1 == "." ? 1 : 0) } == marks
    }

    /// Without doubled slashes and `.`.
    private static func normal(_ path: String) throws(BusError) -> String {
        guard path.hasPrefix("/"), !path.hasSuffix("/"), isPlain(path) else {
            throw .invalidParams(
                "path",
                "must be the absolute path of a file, without control characters and without combining marks "
                    + "on '/' or '.'")
        }
        let parts = path.split(separator: "/").filter { $0 != "." }
        guard let name = parts.last, !parts.contains("..") else {
            throw .invalidParams("path", "must not contain '..', and must end in a file name")
        }
        guard path.utf8.count <= maximumPath, name.utf8.count <= maximumName else {
            throw .invalidParams(
                "path",
                "is too long: at most \(maximumPath) bytes, of which the name has at most "
                    + "\(maximumName)")
        }
        return "/" + parts.joined(separator: "/")
    }

    /// Endings of media that are no movie of the bus's: who writes one wants such a file, and not `belt.avi.mp4`.
    private static let foreignEndings: Set = [
        "3gp", "aac", "ac3", "aif", "aiff", "asf", "au", "avi", "bmp", "caf", "divx", "dng", "dv", "flac", "flv", "gif",
        "h264", "heic", "hevc", "jpeg", "jpg", "m2ts", "m3u8", "m4a", "m4v", "mjpeg", "mjpg", "mka", "mks", "mp2",
        "mp3", "mpeg", "mpg", "mts", "mxf", "nut", "oga", "ogg", "ogv", "opus", "png", "qt", "ts", "vob", "wav", "webm",
        "webp", "wma", "wmv", "y4m", "yuv",
    ]

    private static func withEnding(
        _ path: String, _ member: String, _ fileType: MovieFileType?
    ) throws(BusError) -> (String, MovieFileType) {
        let ending = split(path).ending.dropFirst().lowercased()
        guard !foreignEndings.contains(ending) else {
            throw .invalidParams(member, "ends in .\(ending), which is not a kind of movie; use .mp4, .mov or .mkv")
        }
        guard let ending = MovieFileType(rawValue: ending) else {
            let type = fileType ?? .mp4
            return ("\(path).\(type.rawValue)", type)
        }
        guard fileType ?? ending == ending else {
            throw .invalidParams(
                "fileType", "is \(fileType?.rawValue ?? ""), but the file name ends in .\(ending.rawValue)")
        }
        return (path, ending)
    }
}
