/// Extensions of media files, without the dot. A wrong one is refused before anything is recorded.
enum MediaFileExtensions {
    static let movies: Set = ["mp4", "mov", "mkv"]
    static let photos: Set = ["jpg", "jpeg", "dng", "png", "tif", "tiff"]

    /// Of files that the bus doesn't make.
    private static let others: Set = [
        "3gp", "aac", "ac3", "aif", "aiff", "asf", "au", "avi", "avif", "bmp", "caf", "divx", "dv", "flac", "flv",
        "gif", "h264", "heic", "heif", "hevc", "jp2", "jxl", "m2ts", "m3u8", "m4a", "m4v", "mjpeg", "mjpg", "mka",
        "mks", "mp2", "mp3", "mpeg", "mpg", "mts", "mxf", "nut", "oga", "ogg", "ogv", "opus", "pgm", "pnm",
        "ppm", "qt", "raw", "ts", "vob", "wav", "webm", "webp", "wma", "wmv", "y4m", "yuv",
    ]

    /// The ending of a path's last part, in small letters; nil: it has none.
    static func ending(of path: String) -> String? {
        let name = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return nil }
        return name[name.index(after: dot)...].lowercased()
    }

    /// The ending of a path, if it says that something else is in the file.
    ///
    /// - Parameter own: those that are right.
    static func foreign(_ path: String, beside own: Set<String>) -> String? {
        guard let ending = ending(of: path), !own.contains(ending) else { return nil }
        return [movies, photos, others].contains { $0.contains(ending) } ? ending : nil
    }
}
