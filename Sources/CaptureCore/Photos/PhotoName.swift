public import BusProtocol

/// What a photo's file is called in the capture library.
///
/// Names only: nothing is looked up or made. That no two files have one name is the `uniqueID`'s doing, which is in it;
/// what a coordinator before this one used as well is passed over by ``file(stem:index:count:fileType:attempt:)``.
public enum PhotoName {
    /// UTF-8 bytes of a stem, so that there is room for marks and endings.
    static let maximumStem = 200

    /// What a device's photos are called without marks of their number and without ending.
    ///
    /// - Parameters:
    ///   - name: what the client calls them; nil: `photo-` with the time and the id. Its ending is left out.
    ///   - time: of the day, as files have it: `142530`.
    ///   - device: its id, where several take part.
    ///   - format: what the client asked for; nil: nothing.
    ///   - withRaw: a DNG comes with each: both have one stem.
    /// - Throws: `invalidParams` {path: "name"}.
    public static func stem(
        name: String?, time: String, uniqueID: String, device: String?, format: PhotoFileType?,
        withRaw: Bool = false
    ) throws(BusError) -> String {
        var stem = "photo-\(time)-\(uniqueID)"
        if let name {
            stem = try withoutEnding(name, format, withRaw)
            guard isStem(stem) else {
                throw .invalidParams(
                    "name",
                    "must be a file name of at most \(maximumName) bytes, without '/', without '.' at its beginning, "
                        + "without control characters"
                )
            }
            guard stem.utf8.count <= maximumName else {
                throw .invalidParams("name", "has more than \(maximumName) bytes")
            }
        }
        return device.map { "\(stem)-\($0)" } ?? stem
    }

    /// The name of one file.
    ///
    /// - Parameters:
    ///   - index: the photo's frame's, from 0.
    ///   - count: of this device's frames that become photos; with one, its number is not in the name.
    ///   - attempt: from 1; each gives another name, for where there is such a file already.
    public static func file(
        stem: String, index: Int, count: Int, fileType: PhotoFileType, attempt: Int = 1
    ) -> String {
        var name = stem
        if count > 1 {
            let digits = String(index)
            name += "-" + String(repeating: "0", count: max(0, String(count - 1).count - digits.count)) + digits
        }
        return "\(name)\(mark(attempt)).\(fileType.ending)"
    }

    /// The name of a live photo's movie, which lies beside its picture of the same attempt.
    public static func movie(stem: String, attempt: Int = 1) -> String { "\(stem)\(mark(attempt)).mov" }

    private static func mark(_ attempt: Int) -> String { attempt > 1 ? "_\(attempt)" : "" }

    /// Room is left in it for a device's id.
    static let maximumName = 120

    static func isStem(_ text: String) -> Bool {
        (1...maximumStem).contains(text.utf8.count) && !text.utf8.starts(with: ".".utf8)
            && !text.utf8.contains(UInt8(ascii: "/"))
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    private static func withoutEnding(_ name: String, _ format: PhotoFileType?, _ withRaw: Bool) throws(BusError)
        -> String
    {
        let endings: [(String, PhotoFileType)] = [
            (".jpg", .jpeg), (".jpeg", .jpeg), (".dng", .dng), (".png", .png), (".tiff", .tiff), (".tif", .tiff),
        ]
        for (ending, type) in endings
        where name.lowercased().hasSuffix(ending) {
            guard format ?? type == type || withRaw && type == .dng else {
                throw .invalidParams("name", "ends in \(ending), but the format is \(format?.rawValue ?? "")")
            }
            return String(name.dropLast(ending.count))
        }
        return name
    }
}
