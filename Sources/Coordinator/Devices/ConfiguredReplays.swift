import BusProtocol
public import CaptureCore
import JSON
import LinuxIO
public import Settings

extension Configuration {
    /// `[[replay]]`: what becomes of one entry.
    ///
    /// - Parameter others: those before it.
    static func replay(
        _ entry: inout TableReader, after others: [ReplayDescription]
    ) throws(ParseError) -> ReplayDescription {
        guard let path = try entry.string("path"), path.hasPrefix("/"), path.utf8.count <= 4095 else {
            throw ParseError(
                description: "replay.path must be the absolute path of a movie or of a folder with pictures")
        }
        let name = try entry.string("name") ?? ReplayDescription.name(of: path)
        let loops = try entry.boolean("loop") ?? true
        let duration = try frameDuration(entry.json("fps"))
        let maxGap = try entry.number("max_gap", 0.001...3600).map { Int64($0 * 1_000_000_000) }
        return try checked(
            ReplayDescription(name: name, path: path, loops: loops, frameDuration: duration, maxGap: maxGap), others)
    }

    // A number, or a string such as "30000/1001".
    private static func frameDuration(_ rate: JSONValue?) throws(ParseError) -> FrameDuration? {
        guard let rate else { return nil }
        do throws(BusError) {
            let rate = try FrameRate(json: rate, path: "replay.fps")
            if (0.01...1000).contains(rate.framesPerSecond) { return FrameDuration(rate) }
        } catch {
            throw ParseError(description: error.message)
        }
        throw ParseError(description: "replay.fps must be from 0.01 to 1000")
    }

    static func checked(
        _ replay: ReplayDescription, _ others: [ReplayDescription]
    ) throws(ParseError) -> ReplayDescription {
        guard !Slug.name(replay.name, limit: 32).isEmpty, replay.name.utf8.count <= 100 else {
            throw ParseError(
                description: "replay.name: '\(replay.name)' must have 1 to 100 bytes, with a letter or digit")
        }
        guard others.count < 64 else { throw ParseError(description: "replay: at most 64 are possible") }
        if others.contains(where: { $0.uniqueID == replay.uniqueID }) {
            throw ParseError(description: "replay: two are called '\(replay.name)'; give one another name")
        }
        return replay
    }

    /// Reads replays from the command line, `PATH` or `NAME=PATH`, which are played again and again.
    public static func replays(_ arguments: [String]) throws(ParseError) -> [ReplayDescription] {
        var replays: [ReplayDescription] = []
        for argument in arguments {
            var (name, path): (String?, String) = (nil, argument)
            // A path may have the sign, too: then there is no name before a slash.
            if let sign = argument.firstIndex(of: "="), !argument[..<sign].contains("/") {
                name = String(argument[..<sign])
                path = String(argument[argument.index(after: sign)...])
            }
            guard !path.isEmpty else { throw ParseError(description: "--replay: '\(argument)' has no path") }
            let replay = ReplayDescription(
                name: name ?? ReplayDescription.name(of: path), path: CurrentProcess.absolutePath(path))
            replays.append(try checked(replay, replays))
        }
        return replays
    }
}
