import JSON

extension MethodTable {
    private static let movie = Schema.Property.required("movie", .reference("MovieID"))

    private static let microphone = Schema.Property.optional(
        "microphone",
        Schema.reference("DeviceID").orNull.described(
            "Absent: that of the session's movie output, if it has one; null: without sound."))

    private static let one = Schema.object([.required("movie", .reference("Movie"))], additional: true)

    /// One movie, or those of a take or rig; exactly one is named.
    private static let group = Schema.object([
        .optional("movie", .reference("MovieID")),
        .optional(
            "take", .string(minLength: 1, maxLength: 64).described("Instead of movie: all movies with that take.")),
        .optional(
            "rig", Schema.reference("GroupName").described("Instead of movie: all movies of the rig.")),
    ])

    private static func each(_ schema: Schema) -> Schema {
        .object([.required("movies", .array(of: schema))], additional: true)
    }

    /// What keeps a device from giving pictures.
    private static let silences: [BusError.Reason] = [
        .deviceDisconnected, .deviceInUse, .workerCrashed, .interrupted, .cancelled,
    ]

    static let movies = [
        Method(
            "movie.start",
            "Starts a movie of one camera, or of each camera of a rig or session; returns when the first frame is in "
                + "the file or was sent.",
            params: .object([
                .optional(
                    "session",
                    Schema.reference("SessionID").described(
                        "One with a movie output: of its camera. It has to run.")),
                .optional(
                    "eachCamera",
                    .boolean.described("With session: a movie of each of its cameras, begun together.")),
                .optional(
                    "device",
                    Schema.reference("DeviceID").described(
                        "A camera, or a microphone for sound alone; with session, which of its cameras.")),
                .optional("rig", .reference("GroupName")), microphone,
                .optional(
                    "name",
                    .string(minLength: 1, maxLength: 200).described(
                        "The file's name within the library. Absent, without path: a new one.")),
                .optional(
                    "path",
                    .string(minLength: 1, maxLength: 4096).described("The file, absolute; instead of name.")),
                .optional(
                    "url",
                    .string(minLength: 1, maxLength: 1024).described(
                        "A media server that gets the movie, instead of a file: rtsp, rtsps, srt, rtmp or rtmps.")),
                .optional(
                    "fileType",
                    Schema.reference("MovieFileType").described("Absent: as the file's name ends, else mp4.")),
                .optional(
                    "codec",
                    Schema.reference("MovieCodec").described(
                        "Of the picture. Absent: passThrough where the camera gives JPEG or H.264, else h264.")),
                .optional(
                    "settings",
                    Schema.object([
                        .optional("video", Schema.reference("MovieVideoSettings").orNull),
                        .optional("audio", Schema.reference("MovieAudioSettings").orNull),
                    ]).orNull.described(
                        "How to encode; absent: as is recommended. null, also of one: the samples as they come.")),
                .optional(
                    "fragmentInterval",
                    .number(min: 100, max: 600_000).described("Milliseconds that a power cut may lose; 10000.")),
                .optional(
                    "frameRate",
                    Schema.reference("FrameRate").described(
                        "A constant number of frames per second, 0.01 to 1000. Absent: each frame has its true time.")),
                .optional("maxDuration", .number(min: 1, max: 9_000_000_000).described("Milliseconds.")),
                .optional("maxFileSize", .integer(min: 1).described("Bytes.")),
                .optional(
                    "minFreeDiskSpace",
                    .integer(min: 0).described(
                        "Bytes that must stay free, if that is more than the configuration says.")),
                .optional(
                    "continueAfterCrash",
                    .boolean.described("A recorder that dies is followed by another, with the next part.")),
                .optional(
                    "detached", .boolean.described("True: it does not end with the calling process.")),
                .optional(
                    "take",
                    .string(minLength: 1, maxLength: 64).described(
                        "What it belongs to: of letters, digits, '-' and '_'. Absent: a new one.")),
                .optional(
                    "orientation",
                    Schema.reference("VideoOrientation").described(
                        "The orientation of the picture. Absent: that of the session's connection, else unchanged.")
                ),
                .optional("mirrored", .boolean.described("The picture is shown mirrored.")),
                .optional(
                    "smoothAutoFocus",
                    .boolean.described(
                        "The camera focuses smoothly as long as the movie is made, where it can; true if absent.")),
                .optional(
                    "stabilization",
                    Schema.reference("VideoStabilizationMode").described(
                        "For the whole movie. Absent: that of the session's connection, else unchanged.")),
                .optional(
                    "whenDenied",
                    Schema.choice(["blank"]).described(
                        "Where camera or microphone are not permitted, the movie has a black picture, or silence, in "
                            + "their place."
                    )),
            ]),
            result: .anyOf([.reference("MovieStarted"), .reference("MoviesStarted")]), needs: .nothing,
            feature: .movies,
            errors: [
                .deviceNotFound, .rigNotFound, .sessionNotFound, .sessionNotRunning, .recordingInProgress,
                .pathNotAllowed, .diskFull, .formatUnsupported, .controlUnsupported,
            ] + silences),
        Method(
            "movie.stop",
            "Ends a movie; returns when its file is closed and on the disk. For an ended movie it returns how that "
                + "ended.",
            params: group, result: .anyOf([.reference("MovieEnd"), each(.reference("MovieEnd"))]), needs: .nothing,
            feature: .movies, errors: [.notRecording, .workerCrashed]),
        Method(
            "movie.pause",
            "Pauses a movie: leaves out the following frames. It is no error if the movie is already paused.",
            params: group, result: .anyOf([one, each(.reference("Movie"))]), needs: .nothing, feature: .movies,
            errors: [.notRecording, .workerCrashed]),
        Method(
            "movie.resume", "Continues a movie in the same file.", params: group,
            result: .anyOf([one, each(.reference("Movie"))]), needs: .nothing, feature: .movies,
            errors: [.notRecording, .workerCrashed]),
        Method(
            "movie.status", "Returns a movie; also one of the last 64 that ended.", params: .object([movie]),
            result: one, needs: .nothing, feature: .movies, errors: [.notRecording], isRepeatable: true),
        Method(
            "movie.list", "Returns the movies that are being recorded, in the order of their start.",
            result: .object([.required("movies", .array(of: .reference("Movie")))], additional: true),
            needs: .nothing, feature: .movies, isRepeatable: true),
        Method(
            "movie.recommendedSettings",
            "Returns complete settings for a type of file, with the current size and rate of the camera.",
            params: .object([
                .optional("session", .reference("SessionID")), .optional("device", .reference("DeviceID")), microphone,
                .required("fileType", .reference("MovieFileType")),
            ]),
            result: .object(
                [
                    .required(
                        "video", Schema.reference("MovieVideoSettings").orNull.described("null: there is no camera.")),
                    .required(
                        "audio",
                        Schema.reference("MovieAudioSettings").orNull.described("null: there is no microphone.")),
                ], additional: true),
            needs: .nothing, feature: .movies,
            errors: [.deviceNotFound, .sessionNotFound, .deviceDisconnected, .deviceInUse, .workerCrashed]),
    ]
}
