import BusClient
import JSON

/// Texts about takes.
enum TakeText {
    /// How far one is: `segment 2  0:03.1  0:06.2 in all  0:08.8 left`, `2 segments  0:06.2 in all  0:08.8 left`.
    static func progress(_ take: TakeState) -> String {
        let count = take.segments.count
        var words: [String]
        switch take.state {
        case "recording", "ending":
            words = ["segment \(count + 1)", MovieText.time(take.duration), "\(MovieText.time(take.total)) in all"]
        case "finishing": return "joining"
        default:
            if count == 0 { return "nothing is recorded yet" }
            words = ["\(count) segment\(count == 1 ? "" : "s")", "\(MovieText.time(take.total)) in all"]
        }
        if let remaining = take.remaining { words.append("\(MovieText.time(remaining)) left") }
        if take.state == "ending" { words.append("ending") }
        return words.joined(separator: "  ")
    }

    /// How a segment ended: `0:03.1, 0:06.2 in all, 0:08.8 left.`
    static func ended(_ ending: SegmentEnding) -> String {
        let left = ending.remaining.map { ", \(MovieText.time($0)) left" } ?? ""
        let lengths = "\(MovieText.time(ending.duration)), \(MovieText.time(ending.total)) in all\(left)."
        let what = ending.isKept ? lengths : "The segment was not kept."
        guard !ending.isSuccess else { return what }
        return "\(ending.reason): \(ending.message ?? "The segment has ended.") \(what)"
    }

    /// What to say of an event; nil: nothing.
    static func remark(_ event: String, _ json: JSONValue) -> String? {
        switch event {
        case "recordDurationLessMinRecordDuration":
            "The take is shorter than its minimum of \(time(json["minDuration"]))."
        case "recordDurationLargerEqualMaxRecordDuration":
            "The take has reached its maximum length."
        case "didEndSegment": (try? SegmentEnding(json)).map(ended)
        case "didDeleteSegment": "The segment is deleted; \(time(json["total"])) in all."
        case "didFinishTake" where json["success"] == false: json["error"]?["message"]?.string
        default: nil
        }
    }

    /// The note for a take that is shorter than its minimum; nil: it is not, or has none.
    static func shortness(_ take: TakeState) -> String? {
        guard let least = take.minDuration, take.total < least else { return nil }
        return "The take is \(MovieText.time(take.total)) long; its minimum is \(MovieText.time(least))."
    }

    /// How much is joined: `joining 42 %`.
    static func joining(_ progress: Double) -> String {
        "joining \(Int((min(max(progress, 0), 1) * 100).rounded(.down))) %"
    }

    static func table(_ takes: [TakeState]) -> Table {
        var table = Table("ID", "NAME", "OF", "STATE", ">SEGMENTS", ">TIME", ">LEFT", "OWNER")
        for take in takes {
            let of = [take.device ?? take.session, take.microphone].compactMap(\.self)
            table.add(
                take.id, take.name, of.joined(separator: ", "), take.state, "\(take.segments.count)",
                MovieText.time(take.total), take.remaining.map(MovieText.time) ?? "-",
                ValueText.holder(take.json["owner"]))
        }
        return table
    }

    static func table(_ segments: [TakeSegment]) -> Table {
        var table = Table("SEGMENT", ">LENGTH", "FILE")
        for segment in segments { table.add(segment.id, MovieText.time(segment.duration), segment.path) }
        return table
    }

    /// The finished movie's file, or its id where that is on another machine, on standard output, all else on standard
    /// error.
    static func tell(_ finished: TakeJoin.Finished, asJSON: Bool) throws {
        if asJSON { return try Output.json(finished.take.json) }
        try Output.line(Table.printable(finished.path))
        let take = finished.take
        let cover = finished.cover.map { ", cover \($0)" } ?? ""
        let how = take.isEncoded ? ", encoded" : ""
        Output.note(
            Table.printable("\(MovieText.time(take.duration)), \(ByteSize.text(take.size))\(how)\(cover)."))
        if let advice = finished.advice { Output.note(advice) }
    }

    private static func time(_ milliseconds: JSONValue?) -> String {
        MovieText.time(.milliseconds(milliseconds?.double ?? 0))
    }
}
