import Glibc
import JSON

/// Texts about the capture library.
enum LibraryText {
    /// - Parameter isRemote: the files are on another machine; only their names are shown.
    static func table(_ entries: [JSONValue], isRemote: Bool = false) -> Table {
        var table = Table("ID", "BEGAN", ">LENGTH", ">PICTURE", ">SIZE", "STATE", "OF", "FILE")
        for entry in entries {
            table.add(
                ValueText.plain(entry["id"]), date(entry["started"]), length(entry), pixels(entry),
                sizes(entry), ValueText.plain(entry["state"]), devices(entry), files(entry, isRemote))
            if let problem = entry["problem"]?.string { table.note(problem) }
        }
        return table
    }

    /// All properties of an entry, one per line.
    ///
    /// - Parameter place: the other machine that the files are on; nil: they are on this one.
    static func lines(_ entry: JSONValue, on place: String? = nil) -> [String] {
        var rows: [(String, String)] = [
            ("id", ValueText.plain(entry["id"])), ("kind", ValueText.plain(entry["kind"])),
            ("state", ValueText.plain(entry["state"])),
        ]
        func add(_ title: String, _ value: JSONValue?) {
            if let value, !value.isNull { rows.append((title, ValueText.plain(value))) }
        }
        add("ended", entry["reason"])
        add("problem", entry["problem"])
        for (title, member) in [("file", "path"), ("side-car", "sideCar"), ("cover", "cover"), ("movie", "movie")] {
            let file = entry[member]?.string
            add(title, file.map { path in .string(place.map { "\($0), \(path)" } ?? path) })
        }
        let photo = entry["photo"]
        rows.append((photo == nil ? "began" : "taken", date(entry["started"])))
        if photo == nil { rows.append(("length", length(entry))) }
        rows.append(("size", bytes(entry["size"])))
        rows.append(("of", devices(entry)))
        if let video = entry["video"], !video.isNull {
            rows.append(
                (
                    "picture",
                    "\(ValueText.plain(video["codec"])) "
                        + "\(ValueText.plain(video["width"]))x\(ValueText.plain(video["height"]))"
                ))
        }
        if let photo {
            rows.append(("picture", "\(ValueText.plain(entry["fileType"])) \(pixels(entry))"))
            add("request", photo["uniqueID"])
            if let index = photo["index"]?.integer, index > 0 { rows.append(("number", "\(index + 1)")) }
            if let movie = photo["livePhotoMovie"] { rows.append(("live", live(movie))) }
        }
        if let audio = entry["audio"], !audio.isNull {
            rows.append(("sound", "\(ValueText.plain(audio["codec"])) \(ValueText.plain(audio["rate"])) Hz"))
        }
        add("frames", entry["frames"])
        add("dropped", entry["dropped"])
        add("rig", entry["rig"])
        add("take", entry["take"])
        add("part", entry["part"])
        rows.append(("by", ValueText.holder(entry["owner"])))
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { title, value in
            title + String(repeating: " ", count: width - title.count + 2) + value
        }
    }

    /// `2026-11-22 14:32:05`, as the clocks here go.
    static func date(_ nanoseconds: JSONValue?) -> String {
        guard let nanoseconds = nanoseconds?.integer else { return "-" }
        var (seconds, parts) = (time_t(nanoseconds / 1_000_000_000), tm())
        guard localtime_r(&seconds, &parts) != nil else { return "-" }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return
            "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    }

    private static func length(_ entry: JSONValue) -> String {
        if let photo = entry["photo"] {
            let seconds = photo["livePhotoMovie"]?["duration"]?.double
            return seconds.map { MovieText.time(.milliseconds(($0 * 1000).rounded())) } ?? "-"
        }
        return entry["duration"]?.double.map { MovieText.time(.milliseconds($0)) } ?? "-"
    }

    private static func pixels(_ entry: JSONValue) -> String {
        guard let picture = entry["photo"] ?? entry["video"], let width = picture["width"]?.integer,
            let height = picture["height"]?.integer
        else { return "-" }
        return "\(width)x\(height)"
    }

    private static func bytes(_ count: JSONValue?) -> String { count?.integer.map(ByteSize.text) ?? "-" }

    /// `48 kB`, of a live photo `48 kB + 167 kB`.
    private static func sizes(_ entry: JSONValue) -> String {
        let movie = entry["photo"]?["livePhotoMovie"]?["bytes"]?.integer.map { " + \(ByteSize.text($0))" } ?? ""
        return bytes(entry["size"]) + movie
    }

    /// `/l/2026-11-22/a.jpg`, of a live photo `/l/2026-11-22/a.jpg + a.mov`.
    private static func files(_ entry: JSONValue, _ isRemote: Bool) -> String {
        let movie = entry["movie"]?.string?.split(separator: "/").last.map { " + \($0)" } ?? ""
        let path = ValueText.plain(entry["path"])
        return (isRemote ? path.split(separator: "/").last.map(String.init) ?? path : path) + movie
    }

    /// `2.9 s, 640x480, 1.2 MB, 3 dropped, the photo at 1.5 s`
    private static func live(_ movie: JSONValue) -> String {
        let size = "\(ValueText.plain(movie["width"]))x\(ValueText.plain(movie["height"]))"
        let dropped = movie["dropped"]?.integer.flatMap { $0 > 0 ? ", \($0) dropped" : nil } ?? ""
        return "\(seconds(movie["duration"])), \(size), \(bytes(movie["bytes"]))\(dropped), the photo at "
            + seconds(movie["photoDisplayTime"])
    }

    private static func seconds(_ value: JSONValue?) -> String {
        value?.double.map { "\(ValueText.rate($0)) s" } ?? "-"
    }

    private static func devices(_ entry: JSONValue) -> String {
        let devices = (entry["devices"]?.array ?? []) + (entry["microphone"].map { [$0] } ?? [])
        let names = devices.compactMap { $0["device"]?.string }
        return names.isEmpty ? "-" : names.joined(separator: ", ")
    }
}
