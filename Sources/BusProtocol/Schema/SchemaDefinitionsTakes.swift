import JSON

extension Schema {
    /// The shapes of takes.
    static let takeDefinitions: [String: Schema] = [
        // What clients send
        "TakeID": .string(minLength: 1, maxLength: 64).described("The id of a take, as take.create gives it."),
        "ExportPreset": .choice(["640x480", "960x540", "1280x720", "1920x1080", "3840x2160"]).described(
            "The largest size of a picture."),

        // What the bus says
        "TakeSegment": .object(
            [
                .required("id", .string(minLength: 1).described("The movie's.")), .required("path", path),
                .required("duration", duration),
            ], additional: true
        ).described("A segment that is finished."),
        "Take": .object(
            [
                .required("id", .string(minLength: 1)), .required("name", .string(minLength: 1)),
                .required("state", .choice(["paused", "recording", "ending", "finishing"])),
                .required("session", Schema.string().orNull),
                .required("device", Schema.string().orNull.described("The camera; null: sound alone.")),
                .required("microphone", Schema.string().orNull),
                .required("owner", Schema.reference("Holder").described("The creator.")),
                .required("detached", .boolean),
                .required("segment", Schema.string().orNull.described("The one that is recorded.")),
                .required("segments", .array(of: .reference("TakeSegment"))),
                .required("duration", duration.described("Of the segment that is recorded.")),
                .required("total", duration.described("Of all segments.")),
                .required("remaining", remaining), .required("minDuration", duration.orNull),
                .required("maxDuration", duration.orNull),
                .required("exportPreset", Schema.reference("ExportPreset").orNull),
                .required("video", format.described("How the segments have it; null: not known yet, or none.")),
                .required("audio", format.described("Likewise.")),
            ], additional: true
        ).described("A take as it is now: state/take/<id>/."),
        "TakeSegmentEnd": .object(takeSegmentEnd, additional: true).described("How a segment of a take ended."),
        "TakeMovie": .object(
            [
                .required("take", .string(minLength: 1).described("Also the id of the library's entry.")),
                .required("path", path), .required("cover", cover), .required("duration", duration),
                .required("size", .integer(min: 0).described("Bytes.")),
                .required("encoded", .boolean.described("The segments had to be encoded.")),
                .optional("kept", .reference("Kept")),
            ], additional: true
        ).described("A take that was finished."),
    ]

    static let takeSegmentEnd: [Property] = [
        .required("segment", .string(minLength: 1)), .required("path", path),
        .required("reason", .string(minLength: 1).described("Why it ended, as of a movie.")),
        .required("success", .boolean.described("It ended as requested.")), .required("error", failure),
        .required("kept", .boolean.described("It is a segment of the take.")), .required("duration", duration),
        .required("total", duration.described("Of all segments.")), .required("remaining", remaining),
    ]

    /// What `didFinishTake` has beside the event's name.
    static let takeEnd: [Property] = [
        .required("take", .string(minLength: 1)), .required("success", .boolean), .required("error", failure),
        .optional("path", path), .optional("cover", cover), .optional("duration", duration),
        .optional("size", .integer(min: 0)), .optional("encoded", .boolean),
    ]

    static let takeProgress: [Property] = [
        .required("segment", .string(minLength: 1)), .required("total", duration), .required("remaining", remaining),
    ]

    private static let path = Schema.string(minLength: 1).described("The file, absolute.")

    private static let cover = Schema.string(minLength: 1).orNull.described(
        "The first frame, a JPEG file, absolute; null: sound alone.")

    private static let duration = Schema.number(min: 0).described("Milliseconds.")

    private static let remaining = duration.orNull.described("Milliseconds; null: without a maxDuration.")

    private static let format = Schema.object([.required("codec", .string(minLength: 1))], additional: true).orNull

    private static let failure = Schema.object(
        [.required("reason", .string()), .required("message", .string())], additional: true
    ).orNull
}
