public import JSON

/// A movie, or a folder of pictures, that is to be a camera.
public struct ReplayDescription: Hashable, Sendable {
    /// What people call it; its `uniqueID` comes from it, so that another file can take its place.
    public var name: String
    /// Of a file or folder, absolute.
    public var path: String
    /// From the beginning again at the end.
    public var loops: Bool
    /// Of pictures, and of movies that don't say theirs; nil: ten pictures, or 25 frames of a movie, a second.
    public var frameDuration: FrameDuration?
    /// Nanoseconds that a pause between two frames of a movie lasts at most; nil: as long as in the movie.
    public var maxGap: Int64?

    public init(
        name: String, path: String, loops: Bool = true, frameDuration: FrameDuration? = nil, maxGap: Int64? = nil
    ) {
        self.name = name
        self.path = path
        self.loops = loops
        self.frameDuration = frameDuration
        self.maxGap = maxGap
    }

    /// The name of a file, without its folder and what stands behind its last dot.
    public static func name(of path: String) -> String {
        var path = Substring(path)
        while path.hasSuffix("/"), path.count > 1 { path = path.dropLast() }
        let last = path.split(separator: "/").last ?? path
        guard let dot = last.lastIndex(of: "."), dot != last.startIndex else { return String(last) }
        return String(last[..<dot])
    }

    /// The same as long as the name is.
    public var uniqueID: String { Slug.joined(["replay", name], limit: 120) }

    public var identity: DeviceIdentity {
        DeviceIdentity(
            uniqueID: uniqueID, localizedName: name, type: .virtual, position: .unspecified, driver: "replay",
            bus: "replay:\(Self.name(of: path))")
    }

    /// {name, path, loop, frameDuration?, maxGap?}
    public var json: JSONValue {
        .members([
            "name": .string(name), "path": .string(path), "loop": .bool(loops),
            "frameDuration": frameDuration.map { .string($0.description) }, "maxGap": maxGap.map(JSONValue.integer),
        ])
    }

    public init?(json: JSONValue) {
        guard let name = json["name"]?.string, let path = json["path"]?.string, let loops = json["loop"]?.bool else {
            return nil
        }
        self.init(
            name: name, path: path, loops: loops,
            frameDuration: json["frameDuration"]?.string.flatMap { FrameDuration($0) },
            maxGap: json["maxGap"]?.integer.flatMap { $0 > 0 ? $0 : nil })
    }
}
