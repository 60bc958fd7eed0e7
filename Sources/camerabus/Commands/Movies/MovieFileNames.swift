import ArgumentParser
import Glibc
import LinuxIO

/// The file names of movies, from the value of `-o`: a file, a pattern with `%s` for the camera's id, or a folder.
struct MovieFileNames {
    /// How the names are made.
    enum Naming: Equatable {
        /// Each camera has this with its id for `%s`.
        case pattern(FileNamePattern)
        /// The name for one camera. Each of several gets this name with `-` and its id before the ending, as the bus
        /// calls those of a rig.
        case name(String, several: Bool)
    }

    let naming: Naming

    /// - Parameters:
    ///   - output: a path; one that ends with '/', or is a folder, gets names of its own in it.
    ///   - rig: of which they are; nil: of cameras that were named one by one.
    ///   - fileType: the ending of names that are made here.
    ///   - count: of cameras.
    ///   - time: of the names that are made here: `20260314-091500`.
    ///   - isFolder: whether there is a folder of that name.
    /// - Throws: `ValidationError` for a pattern that can't be one.
    init(
        _ output: String, rig: String?, fileType: String, count: Int, time: String,
        isFolder: (String) -> Bool = Self.isFolder
    ) throws {
        if output.hasSuffix("/") || isFolder(output) {
            let folder = output.hasSuffix("/") ? output : output + "/"
            let name = "-\(time).\(fileType)"
            if let rig {
                naming = .name("\(folder)\(rig)\(name)", several: true)
            } else {
                naming = .pattern(try FileNamePattern(reading: "\(folder.replacing("%", with: "%%"))%s\(name)"))
            }
            return
        }
        let pattern = try FileNamePattern(reading: output)
        if pattern.isSeries {
            throw ValidationError(
                "in the name of a movie only '%s' (the camera's id) and '%%' (a percent sign) are possible")
        }
        guard pattern.namesDevice else {
            naming = .name(pattern.name(0), several: rig != nil || count > 1)
            return
        }
        if let rig {
            throw ValidationError(
                "the movies of a rig are always called NAME-DEVICE. Leave '%s' out for the rig \(rig)")
        }
        naming = .pattern(pattern)
    }

    /// The path for the bus, for the movies of a rig.
    var common: String? {
        guard case .name(let name, several: true) = naming else { return nil }
        return name
    }

    /// The file of a camera.
    func path(of device: String) -> String {
        switch naming {
        case .pattern(let pattern): return pattern.name(0, device: device)
        case .name(let name, several: false): return name
        case .name(let name, several: true): return Self.marked(name, "-\(device)")
        }
    }

    /// A file's name with a mark before its ending.
    static func marked(_ name: String, _ mark: String) -> String {
        let start = name.lastIndex(of: "/").map { name.index(after: $0) } ?? name.startIndex
        guard let dot = name[start...].lastIndex(of: "."), dot > start else { return name + mark }
        return "\(name[..<dot])\(mark)\(name[dot...])"
    }

    /// The name of a movie's side-car.
    static func sideCar(of path: String) -> String { path + ".frames.jsonl" }

    /// Absolute, without links and '..' on the way to it.
    ///
    /// - Throws: ``Failure`` when there is no such folder.
    static func resolved(_ path: String) throws -> String {
        let end = path.lastIndex(of: "/")
        let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        guard let whole = realpath(folder, nil) else {
            throw Failure(status: ExitStatus.refused, description: "\(folder): \(String(cString: strerror(errno)))")
        }
        defer { free(whole) }
        let name = end.map { path[path.index(after: $0)...] } ?? path[...]
        let base = String(cString: whole)
        return base == "/" ? "/\(name)" : "\(base)/\(name)"
    }

    /// The bus may not write to the path of a movie, and this user may not read the library of the bus.
    static var inaccessible: Failure {
        Failure(
            status: ExitStatus.refused,
            description:
                "pathNotAllowed: The bus may not write there, and you have no permission to copy the movie from its "
                + "library. "
                + "Ask for it with 'camerabus ask library --reason TEXT'.")
    }

    static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// The current time for a file name.
    static var time: String {
        var now = Glibc.time(nil)
        var parts = tm()
        localtime_r(&now, &parts)
        var text = [CChar](repeating: 0, count: 32)
        let length = strftime(&text, text.count, "%Y%m%d-%H%M%S", &parts)
        return String(decoding: text.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
