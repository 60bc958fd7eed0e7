import BusClient
import JSON

/// Texts about photos.
enum PhotoText {
    /// `1280x720, 184 kB, 2026-11-22 14:32:05.123, 1/125 s, ISO 200, flash, not settled`.
    static func summary(_ photo: ClientPhoto) -> String {
        var words = ["\(photo.width)x\(photo.height)", ByteSize.text(photo.bytes), time(photo.realtime)]
        let exposure = photo.json["exposure"]
        if let bias = exposure?["bias"]?.double, bias != 0 {
            words.append("\(bias > 0 ? "+" : "")\(ValueText.rate(bias)) EV")
        }
        if let seconds = exposure?["duration"]?.double { words.append(duration(seconds)) }
        if let iso = exposure?["iso"]?.double { words.append("ISO \(ValueText.rate(iso))") }
        if photo.json["flashFired"]?.bool == true { words.append("flash") }
        if !photo.isSettled { words.append("not settled") }
        return words.joined(separator: ", ")
    }

    /// `with a movie of 2.9 s, 1.2 MB, 1280x720, 3 dropped; the photo is at 1.5 s`
    static func summary(_ movie: ClientLivePhotoMovie) -> String {
        // Older buses do not report it.
        let dropped = movie.json["dropped"]?.integer.flatMap { $0 > 0 ? ", \($0) dropped" : nil } ?? ""
        return "with a movie of \(seconds(movie.duration)), \(ByteSize.text(movie.bytes)), "
            + "\(movie.width)x\(movie.height)\(dropped); the photo is at \(seconds(movie.photoDisplayTime))"
    }

    /// Why the movie is shorter than usual, as far as known; nil: it is not, or only by a few frames.
    static func shortness(_ movie: ClientLivePhotoMovie) -> String? {
        let enough = Client.livePhotoReach - .milliseconds(200)
        let (before, after) = (movie.photoDisplayTime, movie.duration - movie.photoDisplayTime)
        let flaws = [
            before < enough
                ? "only \(seconds(before)) before the photo were held, or the camera was moved before it" : nil,
            after < enough
                ? "it ended \(seconds(after)) after the photo, because the camera was moved or its frames ended" : nil,
        ].compactMap(\.self)
        return flaws.isEmpty ? nil : "The movie is short: \(flaws.joined(separator: "; "))."
    }

    /// `4 of 5 photos were late: the camera or this machine is too slow for this rate.`, of a time-lapse; nil: none
    /// did.
    static func behind(_ late: Int, of count: Int) -> String? {
        late == 0 ? nil : "\(late) of \(count) photos were late: the camera or this machine is too slow for this rate."
    }

    /// The session holds less of the past than a live photo shows.
    static func short(_ held: Duration) -> String {
        "Only \(seconds(held)) before the photo are held. The movie begins later."
    }

    private static func seconds(_ time: Duration) -> String { "\(ValueText.rate(time / .seconds(1))) s" }

    /// `1/125 s`, `0.4 s`.
    static func duration(_ seconds: Double) -> String {
        guard seconds > 0, seconds < 0.3 else { return "\(ValueText.rate(max(0, seconds))) s" }
        return "1/\(Int64((1 / max(seconds, 1e-9)).rounded())) s"
    }

    /// `adjusted: cam0's exposure 1 is -2 EV instead of -9. The camera has nothing that is nearer.`
    static func adjustment(_ adjusted: JSONValue) -> String {
        let path = adjusted["path"]?.string ?? ""
        let step = path.split(separator: "[").last.flatMap { Int($0.dropLast()) }
        let isDuration = path.contains("exposureDuration")
        func text(_ value: JSONValue?) -> String {
            guard let number = value?.double else { return ValueText.plain(value) }
            return isDuration ? duration(number) : "\(ValueText.rate(number)) EV"
        }
        let what = step.map { "exposure \($0 + 1)" } ?? path
        let why = adjusted["why"]?.string.map { ". \($0)" } ?? "."
        return "adjusted: \(ValueText.plain(adjusted["device"]))'s \(what) is \(text(adjusted["given"])) instead of "
            + "\(text(adjusted["asked"]))\(why)"
    }

    /// `67 of 100 photos were late, by at most 1.1 s: …`; nil: none was.
    static func late(_ photos: [ClientPhoto]) -> String? { late(photos.compactMap(\.late), of: photos.count) }

    static func late(_ delays: [Duration], of count: Int) -> String? {
        guard let most = delays.max() else { return nil }
        return "\(delays.count) of \(count) photos were late, by at most \(ValueText.rate(most / .seconds(1))) s: "
            + "the camera or this machine is too slow for this rate."
    }

    /// The other client for which the camera is taking photos, if there is one.
    ///
    /// - Parameters:
    ///   - state: `photo` of the camera's state.
    ///   - pid: one's own, as the bus knows it.
    static func before(_ device: String, _ state: JSONValue?, own pid: Int64) -> String? {
        guard let owner = state?["owner"], let other = owner["pid"]?.integer, other != pid else { return nil }
        return "\(device) is taking photos for \(ValueText.holder(owner)). Yours wait in the queue."
    }

    /// How far apart the photos of several cameras are.
    static func spread(_ spread: Duration) -> String {
        "The photos were taken within \(ValueText.rate(spread / .milliseconds(1))) ms."
    }

    /// A stage, on standard error, or as a line of JSON.
    static func tell(_ stage: PhotoStage, asJSON: Bool) {
        guard asJSON else { return Output.note(Table.printable(line(stage))) }
        var members = stage.json.object ?? [:]
        for name in ["epoch", "sequence", "previous"] { members[name] = nil }
        members["uniqueID"] = .string(stage.uniqueID)
        // Whoever has closed the pipe is found out about by the answer's line.
        try? Output.json(.object(members))
    }

    /// `didFinishProcessingPhoto cam0 1`.
    static func line(_ stage: PhotoStage) -> String {
        switch stage.name {
        case "willBeginCapture":
            let count = stage.json["expectedPhotoCount"]?.integer ?? 1
            let devices = stage.json["devices"]?.array?.compactMap(\.string) ?? []
            return ([stage.name] + devices + ["(\(count) \(count == 1 ? "photo" : "photos"))"]).joined(separator: " ")
        case "didFinishProcessingPhoto":
            guard let photo = stage.json["photo"], let index = photo["index"]?.integer else { return stage.name }
            return "\(stage.name) \(ValueText.plain(photo["device"])) \(index + 1)"
        case "didFinishRecordingLivePhotoMovie", "didFinishProcessingLivePhotoToMovieFile":
            guard let duration = stage.json["duration"]?.double else { return stage.name }
            let display = stage.json["photoDisplayTime"]?.double.map { ", the photo at \(ValueText.rate($0)) s" } ?? ""
            return "\(stage.name) \(ValueText.rate(duration)) s\(display)"
        case "didFinishCapture":
            guard let error = stage.error else { return stage.name }
            return "\(stage.name): \(ValueText.plain(error["data"]?["reason"] ?? error["code"]))"
        default: return stage.name
        }
    }

    /// `2026-11-22 14:32:05.123`, as the clocks here go.
    static func time(_ realtime: Int64) -> String {
        let date = LibraryText.date(.integer(realtime))
        return date == "-" ? date : "\(date).\(String(1000 + realtime / 1_000_000 % 1000).dropFirst())"
    }
}
