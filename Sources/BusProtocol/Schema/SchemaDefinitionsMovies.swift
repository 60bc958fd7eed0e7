import JSON

extension Schema {
    /// The shapes of movies.
    static let movieDefinitions: [String: Schema] = [
        // What clients send
        "MovieID": .string(minLength: 1, maxLength: 64).described("The id of a movie, as movie.start gives it."),
        "MovieFileType": .choice(["mp4", "mov", "mkv"]),
        "MovieCodec": .choice(["passThrough", "h264", "raw", "ffv1"]).described(
            "passThrough: as it comes from the camera, JPEG, H.264 or pixels; raw: pixels; ffv1: pixels, encoded "
                + "without loss."),
        "MovieVideoSettings": .object([
            .required("codec", .choice(["h264"])), .required("width", .integer(min: 2, max: 16384)),
            .required("height", .integer(min: 2, max: 16384)),
            .required("bitRate", .integer(min: 1000, max: 1_000_000_000).described("Bits a second.")),
            .required(
                "keyFrameInterval",
                .integer(min: 1, max: 100_000).described("Frames from one key frame to the next, at most.")),
            .optional(
                "preset", .choice(presets).described("libx264's; veryfast if absent.")),
        ]).described("How a picture is encoded."),
        "MovieAudioSettings": .object([
            .required("codec", .choice(["aac", "opus", "pcm"])),
            .required("rate", .integer(min: 4000, max: 384_000).described("Samples a second.")),
            .required("channels", .integer(min: 1, max: 8)),
            .required(
                "bitRate",
                .integer(min: 1000, max: 100_000_000).described("Bits a second; of pcm it follows from the rest.")),
        ]).described("How sound is encoded."),

        // What the bus says
        "MovieStarted": .object(
            [
                .required("movie", .string(minLength: 1)), .required("path", path), .optional("url", url),
                .required("take", .string(minLength: 1)), .required("part", .integer(min: 1)),
                .required("devices", .array(of: .string(), min: 1).described("What it is of: camera and microphone.")),
                .required("microphone", Schema.string().orNull),
                .required("fileType", fileType), .required("video", video),
                .required("audio", audio), .optional("smoothAutoFocus", smooth),
                .optional("stabilization", stabilization), .optional("blank", blank),
                .optional("sideCarProblem", sideCarProblem), .optional("kept", .reference("Kept")),
            ], additional: true
        ).described("A movie that has begun."),
        "MoviesStarted": .object(
            [
                .required("movies", .array(of: .reference("MovieStarted"), min: 1)),
                .required("take", .string(minLength: 1)), .optional("rig", .string(minLength: 1)),
            ], additional: true
        ).described("The movies of a rig or session, in the order of its cameras."),
        "MovieEnd": .object(
            [
                .required("movie", .string(minLength: 1)), .required("path", path), .optional("url", url),
                .required("reason", .string(minLength: 1).described("Why it ended.")),
                .required("success", .boolean.described("It ended as requested.")),
                .required(
                    "error",
                    Schema.object([.required("reason", .string()), .required("message", .string())], additional: true)
                        .orNull),
                .required("duration", .number(min: 0).described("Milliseconds.")),
                .required("size", count.described("Bytes.")), .required("frames", count),
                .required("dropped", count.described("Frames that are not in it.")),
                .required("kept", .boolean.described("The file is there, and plays.")),
                .optional("next", Schema.string().orNull.described("The movie that continues it.")),
                .optional("sideCarProblem", sideCarProblem),
            ], additional: true
        ).described("How a movie ended."),
        "Movie": .object(
            [
                .required("id", .string(minLength: 1)), .required("path", path), .optional("url", url),
                .required("name", .string(minLength: 1).described("The file's, or the last of the url.")),
                .required("state", .choice(["starting", "recording", "paused", "finishing", "finished"])),
                .required("device", Schema.string().orNull.described("The camera; null: sound alone.")),
                .required("microphone", Schema.string().orNull), .required("session", Schema.string().orNull),
                .required("rig", Schema.string().orNull), .required("take", .string(minLength: 1)),
                .required("part", .integer(min: 1)), .required("owner", .reference("Holder")),
                .required("detached", .boolean), .required("fileType", fileType),
                .required("video", video), .required("audio", audio),
                .required("fragmentInterval", .number(min: 0).described("Milliseconds.")),
                .required("recordedDuration", .number(min: 0).described("Milliseconds.")),
                .required("recordedFileSize", count.described("Bytes.")),
                .required("syncedDuration", .number(min: 0).described("Milliseconds: what outlives a power cut.")),
                .required("syncedFileSize", count.described("Bytes, likewise.")),
                .required("frames", count.described("Frames that are in it.")),
                .required(
                    "dropped", count.described("Frames that were lost on the way, or that there was no time for.")),
                .required("fragments", count),
                .required(
                    "encoderLoad",
                    .number(min: 0, max: 1).described("The share of its time that the recorder is at work.")),
                .optional(
                    "startOffset",
                    Schema.number().orNull.described(
                        "Of a rig: milliseconds from the time that all were to begin at to the first frame.")),
                .optional("connected", .boolean.described("Of a url: the server is there.")),
                .optional("reconnects", count.described("Of a url: how often the server was connected to again.")),
                .optional("smoothAutoFocus", smooth), .optional("stabilization", stabilization),
                .optional("blank", blank), .optional("sideCarProblem", sideCarProblem),
                .optional(
                    "waitingFor",
                    Schema.array(of: .string(minLength: 1), min: 1).described(
                        "Its devices that have given something and give nothing now. Absent: there are none.")),
                .optional(
                    "source",
                    .object([.required("width", .integer(min: 1)), .required("height", .integer(min: 1))])
                        .described("Of the camera's pictures now, which are scaled. Absent: it has not changed.")),
                .optional(
                    "follows", .string(minLength: 1).described("The movie in whose place it continues.")),
                .optional("end", Schema.reference("MovieEnd").orNull.described("Of one that has ended.")),
            ], additional: true
        ).described("A movie as it is now: state/movie/<id>/."),
    ]

    private static let presets = [
        "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower",
    ]

    private static let path = Schema.string(minLength: 1).orNull.described("The file; null with url.")

    private static let url = Schema.string(minLength: 1).described(
        "The server that gets the movie, without user, password and query.")

    private static let fileType = Schema.reference("MovieFileType").orNull.described("null with url.")

    private static let count = Schema.integer(min: 0)

    private static let smooth = Schema.boolean.described("Its camera was set to focus smoothly for it.")

    private static let stabilization = Schema.reference("VideoStabilizationMode").described(
        "What its camera's pictures were set to for it.")

    private static let blank = Schema.array(of: .choice(["video", "audio"]), min: 1).described(
        "The media that are black or silent, because the user has no permission.")

    private static let sideCarProblem = Schema.string(minLength: 1).described(
        "Why it has no side-car, or one that is not whole. Absent: nothing is wrong with it.")

    private static let video = Schema.object(
        [
            .required("codec", .string(minLength: 1).described("mjpeg, h264, raw or ffv1.")),
            .required("width", .integer(min: 1)), .required("height", .integer(min: 1)),
        ], additional: true
    ).orNull.described("null: sound alone, or not known yet.")

    private static let audio = Schema.object(
        [
            .required("codec", .string(minLength: 1).described("aac, opus or pcm.")),
            .required("rate", .integer(min: 1)), .required("channels", .integer(min: 1)),
        ], additional: true
    ).orNull.described("null: without sound, or not known yet.")
}
