import JSON

extension Schema {
    /// The shapes of photos.
    static let photoDefinitions: [String: Schema] = [
        // What clients send
        "PhotoSettings": .object([
            .optional(
                "uniqueID",
                .string(minLength: 1, maxLength: PhotoID.maxBytes).described(
                    "Of letters and digits of ASCII and '-': the stages are told under it, and it is good once. "
                        + "Absent: a new one."
                )),
            .optional(
                "format",
                Schema.reference("PhotoFileType").described(
                    "Absent: the first that the camera's present format allows.")),
            .optional(
                "raw",
                .boolean.described("With a DNG of the same frame as a further photo (feature photosWithRaw).")),
            .optional(
                "quality",
                .integer(min: 1, max: 100).described("Of a JPEG. Absent: as the camera makes it, else 95.")),
            .optional("flash", .choice(["off", "on", "auto"]).described("off if absent.")),
            .optional("redEyeReduction", .boolean), .optional("stabilization", .boolean),
            .optional(
                "highResolution",
                .boolean.described("At the camera's largest size, which its stream has for that moment.")),
            .optional(
                "maxPhotoDimensions",
                .object([
                    .required("width", .integer(min: 1, max: 65535)), .required("height", .integer(min: 1, max: 65535)),
                ]).described(
                    "At the camera's largest size that is not larger, of its own picture (feature maxPhotoDimensions).")
            ),
            .optional(
                "orientation",
                Schema.reference("VideoOrientation").described(
                    "The orientation for display. Absent: that of the session's connection, else that of the camera.")),
            .optional("mirrored", .boolean.described("It is to be shown mirrored. Absent: likewise.")),
            .optional(
                "turned", .boolean.described("The pixels are turned so; else the file says how to turn them.")),
            .optional(
                "thumbnail",
                .anyOf([
                    .boolean,
                    .object([
                        .optional("maxSize", .integer(min: 16, max: 640).described("Of its longer side, pixels; 160.")),
                        .optional("quality", .integer(min: 1, max: 100).described("80.")),
                    ]),
                ]).described("A small picture in the file; none if absent.")),
            .optional("bracket", Schema.reference("PhotoBracket")),
            .optional("burst", .integer(min: 1, max: 100).described("Photos of each camera, one after the other; 1.")),
            .optional(
                "interval",
                .number(min: 0, max: 10_000).described("Milliseconds between those of a burst; 0: each frame.")),
            .optional(
                "livePhoto",
                .boolean.described(
                    "With a movie of the 1.5 seconds before and after it, where the session's photo output has "
                        + "livePhotoCaptureEnabled (feature livePhotos)."
                )),
            .optional(
                "ago",
                .number(min: 1, max: 10_000).described(
                    "Milliseconds before the request came at which it is to have been taken, of the pictures that a "
                        + "session's preRoll holds (feature photosOfThePast)."
                )),
        ]).described("What the photos are to be."),
        "PhotoFileType": .choice(["jpeg", "dng", "png", "tiff"]).described(
            "JPEG with EXIF, the sensor's own pixels (Adobe DNG), or each pixel without loss."),
        "SceneMonitoring": .object([
            .optional("flash", .choice(["off", "on", "auto"]).described("off if absent.")),
            .optional("stabilization", .boolean.described("false if absent.")),
        ]).described("The settings for which the bus reports whether the scene needs flash or stabilization."),
        "PhotoBracket": .anyOf([
            .object([
                .required(
                    "exposureBias",
                    .array(of: .number(min: -20, max: 20), min: 2, max: 16).described(
                        "EV relative to what the camera meters."))
            ]),
            .object([
                .required(
                    "exposureDuration",
                    .array(of: .anyOf([.number(min: 0), .reference("FrameDuration")]), min: 2, max: 16).described(
                        "Seconds, or a fraction of them: \"1/125\"."))
            ]),
        ]).described("Photos of one scene, each with its exposure."),

        // What the bus says
        "PhotoCapture": .object(
            [
                .required("uniqueID", .string(minLength: 1)), .required("resolved", .reference("PhotoResolved")),
                .required("expectedPhotoCount", .integer(min: 1)),
                .required("photos", .array(of: .reference("Photo"), min: 1)),
                .optional("livePhotoMovie", Schema.reference("LivePhotoMovie").described("Of a live photo.")),
                .optional(
                    "spread",
                    .integer(min: 0).described(
                        "Of several cameras: nanoseconds between the first and the last one's first photo.")),
                .optional(
                    "late",
                    .integer(min: 1).described(
                        "How many photos of bursts were taken later than asked. Absent: none.")),
                .optional(
                    "adjusted",
                    .array(
                        of: .object(
                            [
                                .required("device", .string(minLength: 1)), .required("path", .string()),
                                .required("asked", .any), .required("given", .any), .required("why", .string()),
                            ], additional: true)
                    ).described("What the camera changed in the request. Absent: nothing.")),
                .required(
                    "attachments",
                    .array(
                        of: .object(
                            [
                                .required("name", .string(minLength: 1)), .required("contentType", .string()),
                                .required("bytes", .integer(min: 1)),
                            ], additional: true)
                    ).described("The reply's further frames; empty unless the photos are delivered in the reply.")),
                .optional(
                    "attachmentsGone",
                    .boolean.described("Asked again with the same key, and the files are not kept any more.")),
            ], additional: true
        ).described("Photos that were taken."),
        "PhotoResolved": .object(
            [
                .required("devices", .array(of: .reference("PhotoResolution"), min: 1)),
                .optional("livePhotoMovie", size.described("Of a live photo, as far as it is known.")),
            ], additional: true
        ).described("What became of the settings, by camera."),
        "LivePhotoMovie": .object(
            [
                .required(
                    "contentIdentifier",
                    .string(minLength: 36, maxLength: 36).described(
                        "A UUID, which both files of the live photo "
                            + "have.")),
                .required("width", .integer(min: 1).described("As it is to be shown.")),
                .required("height", .integer(min: 1)), .required("bytes", .integer(min: 1).described("Of the file.")),
                .required("duration", .number(min: 0).described("Seconds.")),
                .required(
                    "photoDisplayTime", .number(min: 0).described("Seconds from its beginning to the photo's moment.")),
                .optional(
                    "dropped",
                    .integer(min: 0).described(
                        "How many pictures the camera took in its time that are not in it. Absent: none.")),
                .optional("path", .string(minLength: 1).described("The file in the library, absolute.")),
                .optional("attachment", .integer(min: 0).described("Which of attachments it is.")),
            ], additional: true
        ).described("The movie of a live photo (MOV: H.264, and AAC where there is sound)."),
        "PhotoResolution": .object(
            [
                .required("device", .string(minLength: 1)), .required("format", .reference("PhotoFileType")),
                .required("width", .integer(min: 1)), .required("height", .integer(min: 1)),
                .required("pixelFormat", Schema.reference("PixelFormat").described("What the camera gives for it.")),
                .required("flash", .boolean), .required("redEyeReduction", .boolean),
                .required("stabilization", .boolean), .required("highResolution", .boolean),
                .optional("raw", size.described("The size of the DNG of each frame. Absent: there is no DNG.")),
                .optional("thumbnail", size), .optional("bracket", .reference("PhotoBracket")),
                .required("photos", .integer(min: 1).described("How many files come of this camera.")),
            ], additional: true),
        "Photo": .object(
            [
                .required("device", .string(minLength: 1)),
                .required(
                    "index",
                    .integer(min: 0).described(
                        "Of this camera's photos of the request: two files of one frame share it.")),
                .required("fileType", .reference("PhotoFileType")), .required("width", .integer(min: 1)),
                .required("height", .integer(min: 1)), .required("bytes", .integer(min: 1).described("Of the file.")),
                .required(
                    "timestamp",
                    .object(
                        [
                            .required("monotonic", .reference("Nanoseconds")),
                            .required("realtime", .integer().described("CLOCK_REALTIME, nanoseconds.")),
                            .required("source", .choice(["startOfExposure", "endOfFrame", "dequeue"])),
                        ], additional: true)),
                .required("sequence", .integer(min: 0).described("The frame's captureSequence.")),
                .required("stream", .string(minLength: 1)),
                .optional(
                    "exposure",
                    .object(
                        [
                            .optional("duration", .number(min: 0).described("Seconds.")), .optional("iso", .number()),
                            .optional("bias", .number().described("EV.")),
                        ], additional: true)),
                .optional("flashFired", .boolean),
                .required(
                    "settled",
                    .boolean.described("False: the camera had not found its exposure in the time that it has for it.")),
                .optional(
                    "late",
                    .integer(min: 1).described(
                        "Nanoseconds by which it was taken later than its burst asked. Absent: it was not.")),
                .optional("thumbnail", size),
                .optional("path", .string(minLength: 1).described("The file in the library, absolute.")),
                .optional("id", .string(minLength: 1).described("The entry in the library.")),
                .optional(
                    "error",
                    .object(
                        [
                            .required("code", .integer()), .required("message", .string()),
                            .required("data", .object([.required("reason", .string())], additional: true)),
                        ], additional: true
                    ).described("Why it is not in the library, where it should be.")),
                .optional("attachment", .integer(min: 0).described("Which of attachments it is.")),
            ], additional: true
        ).described("A photo that is finished."),
        "PhotoReadiness": .choice(["notRunning", "ready", "waitingForCapture", "waitingForProcessing", "notReady"]),
        "PhotoState": .object(
            [
                .required("readiness", .reference("PhotoReadiness")),
                .required("waiting", .integer(min: 0).described("Requests that wait for their turn.")),
                .optional(
                    "owner",
                    Schema.reference("Holder").described("The holder whose photo is being taken. Absent: none.")),
            ], additional: true
        ).described("How ready a camera is to take a photo."),
    ]

    private static let size = Schema.object(
        [.required("width", .integer(min: 1)), .required("height", .integer(min: 1))], additional: true)

    /// What a session's photo output has beside its options.
    static let photoOutput: [Property] = [
        .optional("livePhotoCaptureEnabled", .boolean.described("Of a photo output.")),
        .optional("livePhotoCaptureSuspended", .boolean.described("Of a photo output.")),
        .optional("livePhotoAutoTrimmingEnabled", .boolean.described("Of a photo output.")),
        .optional(
            "livePhotoCaptureSupported",
            .object(
                [
                    .required("supported", .boolean),
                    .optional("why", .string().described("Why not, in a sentence. Absent: it is supported.")),
                ], additional: true
            ).described("Of a photo output: whether livePhotoCaptureEnabled can be true.")),
        .optional(
            "livePhotoPast",
            .integer(min: 0, max: 1500).described(
                "Of a photo output: milliseconds of the past that a live photo's movie would have if it were taken "
                    + "now. Absent: it takes none now."
            )),
        .optional(
            "availablePhotoCodecTypes",
            .array(of: .string()).described("Of a photo output: what format may be that is encoded.")),
        .optional(
            "availableRawPhotoPixelFormatTypes",
            .array(of: .string()).described("Of a photo output: sensor's pixels that dng can have.")),
        .optional(
            "supportedMaxPhotoDimensions",
            .array(of: size).described("Of a photo output: what maxPhotoDimensions may be, the largest last.")),
        .optional("readiness", Schema.reference("PhotoReadiness").described("Of a photo output.")),
        .optional("isFlashScene", .boolean.described("Of a photo output: a photo of the scene needs a flash.")),
        .optional(
            "isStillImageStabilizationScene",
            .boolean.described("Of a photo output: a photo of the scene needs stabilization.")),
    ]
}
