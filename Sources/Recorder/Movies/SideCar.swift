import CaptureCore
import Glibc
import JSON
import LinuxIO

/// The file beside a movie that has a line for each frame: what its first line says.
enum SideCar {
    /// {movie, camera, microphone, fileType, take, part, follows, rig, firstFrame, realtime, notBefore, startOffset}.
    ///
    /// `follows` is the movie in whose place this one continues. Times are nanoseconds of CLOCK_MONOTONIC; `realtime`
    /// is the first frame's of CLOCK_REALTIME, and `startOffset` is how long after `notBefore` the first frame was
    /// taken.
    ///
    /// - Parameter notBefore: when it was to begin, together with others; nil: with its first frame.
    static func head(
        _ request: MovieRequest, firstFrame: Int64, realtime: Int64, notBefore: Instant?
    ) -> JSONValue {
        [
            "movie": .string(request.movie), "camera": request.camera?.json ?? .null,
            "microphone": request.microphone?.json ?? .null, "fileType": .string(request.fileType.rawValue),
            "take": request.take.map(JSONValue.string) ?? .null, "part": JSONValue(request.part),
            "follows": request.follows.map(JSONValue.string) ?? .null,
            "rig": request.rig.map(JSONValue.string) ?? .null, "firstFrame": .integer(firstFrame),
            "realtime": .integer(realtime),
            "notBefore": notBefore.map(JSONValue.integer) ?? .null,
            "startOffset": notBefore.map { .integer(firstFrame - $0) } ?? .null,
        ]
    }

    /// Whether a file is one, by its first line; an empty one is what a recorder has left that was killed before it
    /// wrote any. Nothing else is ever one: no link, no pipe, no folder.
    static func isOne(_ path: String) -> Bool {
        // What lies there may not hold us up.
        guard let file = try? FileDescriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) else { return false }
        var status = stat()
        guard fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
        var bytes = [UInt8](repeating: 0, count: longestHead)
        let count = pread(file.rawValue, &bytes, bytes.count, 0)
        guard count > 0 else { return count == 0 }
        let line = bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }
        guard line.count < count, let head = try? JSONValue(parsing: Array(line)) else { return false }
        return head["movie"]?.string != nil && head["firstFrame"]?.integer != nil && head["camera"] != nil
    }

    /// Bytes.
    private static let longestHead = 1 << 16

    /// The line in front of the first frame of another camera, which counts by itself: {camera}.
    static func change(_ camera: MovieRequest.Device) -> JSONValue { ["camera": camera.json] }

    /// The line in front of the first frame of another size, which the movie scales: {source: {width, height}}.
    static func change(_ size: Dimensions) -> JSONValue { ["source": size.json] }
}
