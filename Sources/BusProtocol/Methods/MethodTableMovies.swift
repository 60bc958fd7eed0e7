import JSON

extension MethodTable {
    private static let movie = Schema.Property.required("movie", .reference("MovieID"))

    private static let microphone = Schema.Property.optional(
        "microphone",
        Schema.reference("DeviceID").orNull.described(
            "Absent: that of the session's movie output, if it has one; null: without sound."))

    private static let one = Schema.object([.required("movie", .reference("Movie"))], additional: true)

    /// What keeps a device from giving pictures.
    private static let silences: [BusError.Reason] = [
        .deviceDisconnected, .deviceInUse, .workerCrashed, .interrupted, .cancelled,
    ]

    static let movies = [
        Method(
            "movie.start",
            "Begins a movie of one camera, or one of each of a rig's, and answers when the first frame is in the file, or was sent.",
            params: .object([
                .optional(
                    "session",
                    Schema.reference("SessionID").described("One with a movie output: of its camera. It has to run.")),
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
                    .string(minLength: 1, maxLength: 4096).described("The file, absolute, in the place of name.")),
                .optional(
                    "url",
                    .string(minLength: 1, maxLength: 1024).described(
                        "A media server that gets the movie, in the place of a file: rtsp, rtsps, srt, rtmp or rtmps.")),
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
                    .number(min: 100, max: 600_000).described("Milliseconds that a power cut may cost; 10000.")),
                .optional(
                    "frameRate",
                    .number(min: 0.01, max: 1000).described(
                        "Frames a second, equally far apart. Absent: each has its true time.")),
                .optional("maxDuration", .number(min: 1, max: 9_000_000_000).described("Milliseconds.")),
                .optional("maxFileSize", .integer(min: 1).described("Bytes.")),
                .optional(
                    "minFreeDiskSpace",
                    .integer(min: 0).described("Bytes that stay free. Absent: as the configuration has it.")),
                .optional(
                    "continueAfterCrash",
                    .boolean.described("A recorder that dies is followed by another, with the next part.")),
                .optional(
                    "detached", .boolean.described("True: it outlives the process that asks; else it ends with that.")),
                .optional(
                    "take",
                    .string(minLength: 1, maxLength: 64).described(
                        "What it belongs to: of letters, digits, '-' and '_'. Absent: a new one.")),
                .optional(
                    "orientation",
                    Schema.reference("VideoOrientation").described(
                        "How the picture is to be shown. Absent: as the session's connection has it, else as it comes.")
                ),
                .optional("mirrored", .boolean.described("It is to be shown mirrored.")),
                .optional(
                    "smoothAutoFocus",
                    .boolean.described(
                        "The camera focuses smoothly as long as the movie is made, where it can; true if absent.")),
                .optional(
                    "stabilization",
                    Schema.reference("VideoStabilizationMode").described(
                        "As long as the movie is made. Absent: as the session's connection has it, else as it is.")),
                .optional(
                    "whenDenied",
                    Schema.choice(["blank"]).described(
                        "Where camera or microphone are not permitted, the movie has a black picture, or silence, in their place."
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
            "Ends a movie, and answers when its file is closed and on the disk; of one that has ended how it did.",
            params: .object([movie]), result: .reference("MovieEnd"), needs: .nothing, feature: .movies,
            errors: [.notRecording, .workerCrashed]),
        Method(
            "movie.pause", "Leaves out of a movie what comes from now on; that it is paused already is no error.",
            params: .object([movie]), result: one, needs: .nothing, feature: .movies,
            errors: [.notRecording, .workerCrashed]),
        Method(
            "movie.resume", "Goes on with a movie in the same file.", params: .object([movie]), result: one,
            needs: .nothing, feature: .movies, errors: [.notRecording, .workerCrashed]),
        Method(
            "movie.status", "Answers a movie, also one of the 64 that ended last.", params: .object([movie]),
            result: one, needs: .nothing, feature: .movies, errors: [.notRecording], isRepeatable: true),
        Method(
            "movie.list", "Answers the movies that are being made, in the order in which they were begun.",
            result: .object([.required("movies", .array(of: .reference("Movie")))], additional: true),
            needs: .nothing, feature: .movies, isRepeatable: true),
        Method(
            "movie.recommendedSettings",
            "Answers complete settings for a kind of file, of the size and the rate that the camera has now.",
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
