import JSON

extension Schema {
    /// The shapes of sessions.
    static let sessionDefinitions: [String: Schema] = [
        // What clients send
        "SessionID": .string(minLength: 1, maxLength: 64).described("The id of a session, as session.create gives it."),
        "SessionPreset": .choice([
            "photo", "high", "medium", "low", "352x288", "640x480", "1280x720", "1920x1080", "3840x2160",
            "iFrame960x540",
            "iFrame1280x720", "inputPriority",
        ]).described("What the session is for; high where none is named. inputPriority: the inputs' own formats."),
        "SessionPriority": .integer(min: -1000, max: 1000)
            .described(
                "If two sessions conflict, the one with the higher priority wins; absent: 0. Only administrators raise "
                    + "it above 0."),
        "SessionInputWish": .anyOf([
            .reference("DeviceID"),
            .object([
                .required("device", .reference("DeviceID")),
                .optional("activeFormat", Schema.reference("FormatWish").orNull),
                .optional("frameRate", Schema.reference("FrameRateWish").orNull),
                .optional("preferredDataSource", preferredDataSource),
            ]),
        ]).described(
            "A device, or each of a rig's; a bare string is its id or the rig's name. With an activeFormat of a camera "
                + "the session's preset is inputPriority."
        ),
        "SessionOutputWish": .anyOf([
            .reference("SessionOutputType"),
            .object([.required("type", .reference("SessionOutputType")), .optional("id", outputID)] + outputOptions),
        ]).described("An output; a bare string is its type."),
        "SessionOutputType": .choice(["photo", "movie", "videoData", "audioData", "preview", "metadata"]),
        "SessionAction": .anyOf([
            .object([.required("addInput", .reference("SessionInputWish"))]),
            .object([
                .required(
                    "removeInput",
                    .anyOf([.reference("DeviceID"), .object([.required("device", .reference("DeviceID"))])]))
            ]),
            .object([
                .required(
                    "setInput",
                    .object([
                        .required("device", .reference("DeviceID")),
                        .optional("activeFormat", Schema.reference("FormatWish").orNull),
                        .optional("frameRate", Schema.reference("FrameRateWish").orNull),
                        .optional("preferredDataSource", preferredDataSource),
                    ]))
            ]),
            .object([.required("addOutput", .reference("SessionOutputWish"))]),
            .object([
                .required("removeOutput", .anyOf([outputID, .object([.required("output", outputID)])]))
            ]),
            .object([.required("setOutput", .object([.required("output", outputID)] + outputOptions))]),
            .object([.required("preset", .reference("SessionPreset"))]),
            .object([.required("priority", .reference("SessionPriority"))]),
            .object([
                .required(
                    "connection",
                    .object([
                        .optional("input", .reference("DeviceID")), .optional("output", outputID),
                        .optional("videoOrientation", .reference("VideoOrientation")),
                        .optional("videoMirrored", .reference("VideoMirroring")), .optional("enabled", .boolean),
                        .optional("preferredVideoStabilizationMode", .reference("VideoStabilizationMode")),
                    ]))
            ]),
        ]).described("One action of session.configure."),
        "VideoOrientation": .choice(["portrait", "portraitUpsideDown", "landscapeRight", "landscapeLeft"])
            .described("Which way up the picture is wanted; a device's own is landscapeRight."),
        "VideoStabilizationMode": .choice(["off", "standard", "cinematic", "auto"])
            .described("How much the picture is stabilized; auto: what the device supports, if anything."),
        "VideoMirroring": .anyOf([.boolean, .constant("auto")])
            .described("auto: while the camera looks to the front, decided anew with each camera."),

        // What the bus says
        "SessionResult": .object(
            [
                .required("session", .string()), .required("state", .reference("Session")),
                .required(
                    "resolved",
                    .array(of: .reference("SessionDelivery")).described(
                        "Of a session that is not started: what it would get.")),
                .optional(
                    "hardwareCost",
                    hardwareCost.described(
                        "What the fullest USB bus of its cameras costs, with all that streams beside; of a session "
                            + "that is not started, if it were. Above 1 it can't run, 0: none is on USB."
                    )),
                .required("explanation", .array(of: .string()).described("Why, in sentences for people.")),
                .optional("kept", .reference("Kept")),
            ], additional: true),
        "SessionDelivery": .object(
            [
                .required("output", .string()), .required("type", .string()),
                .required("device", Schema.string().orNull.described("null: the session has no input of its kind.")),
                .required("topic", Schema.string().orNull.described("What to subscribe to; null: nothing.")),
                .optional("mediaType", Schema.choice(["video", "audio"]).described("Of the device.")),
                .required("rendition", Schema.string().orNull),
                .required("width", Schema.integer(min: 1).orNull.described("null: it is sound, or has no device.")),
                .required("height", Schema.integer(min: 1).orNull),
                .required("frameRate", Schema.number(min: 0).orNull),
                .optional("sampleFormat", Schema.reference("SampleFormat").orNull.described("null: it is pictures.")),
                .optional("rate", Schema.integer(min: 1).orNull.described("Frames of sound a second.")),
                .optional("channels", Schema.integer(min: 1).orNull),
                .required("mirrored", .boolean),
                .required(
                    "activeVideoStabilizationMode",
                    Schema.reference("VideoStabilizationMode").described("What is on at the device, whoever wanted it.")
                ),
                .required(
                    "why", Schema.string().orNull.described("What could not be set as requested; null: nothing.")),
            ], additional: true
        ).described("What an output gets from one of the inputs."),
        "SessionInterruption": .object(
            [
                .required("reason", .string()), .required("device", Schema.string().orNull),
                .required(
                    "by",
                    .any.described(
                        "What prevents it: {session or lock, holder}, or {systemPressureState}; null: unknown.")),
                .required("message", .string()),
            ], additional: true),
        "Session": .object(
            [
                .required("id", .string(minLength: 1)), .required("name", Schema.string().orNull),
                .required("owner", .reference("Holder")), .required("detached", .boolean),
                .required("since", .reference("Nanoseconds")), .required("preset", .reference("SessionPreset")),
                .required("priority", .integer()),
                .required(
                    "inputs",
                    .array(
                        of: .object(
                            [
                                .required("device", .string()),
                                .optional("mediaType", .choice(["video", "audio"])),
                                .required("activeFormat", .any), .required("frameRate", .any),
                                .optional(
                                    "preferredDataSource",
                                    Schema.string().orNull.described("auto, or the id of one; null: it is a camera.")),
                                .optional(
                                    "formatDescription",
                                    Schema.reference("FormatDescription").orNull.described(
                                        "What a camera delivers to it; null: nothing now, or it is a microphone.")),
                            ], additional: true)
                    ).described("The requested formats and rates; null: those of the preset.")),
                .required(
                    "outputs",
                    .array(
                        of: .object(
                            [
                                .required("id", .string()), .required("type", .string()),
                                .required("format", Schema.string().orNull),
                                .required("width", Schema.integer().orNull),
                                .required("height", Schema.integer().orNull),
                                .required("frameRate", Schema.number().orNull),
                                .required("quality", Schema.integer().orNull),
                                .optional("rate", Schema.integer().orNull),
                                .optional("channels", Schema.integer().orNull),
                                .optional("whenDenied", .choice(["blank"])),
                                .optional("preRoll", .integer(min: 0, max: 10_000).described("Of a photo output.")),
                                .optional(
                                    "photoSettingsForSceneMonitoring",
                                    Schema.reference("SceneMonitoring").orNull.described("Of a photo output.")),
                            ] + photoOutput, additional: true))),
                .required(
                    "connections",
                    .array(
                        of: .object(
                            [
                                .required("input", .string()), .required("output", .string()),
                                .required("videoOrientation", .reference("VideoOrientation")),
                                .required("videoMirrored", .reference("VideoMirroring")),
                                .required("enabled", .boolean),
                                .required("preferredVideoStabilizationMode", .reference("VideoStabilizationMode")),
                            ], additional: true))),
                .required(
                    "state", .choice(["stopped", "starting", "running", "interrupted", "waitingForAuthorization"])),
                .required("wanted", .boolean.described("It was started, and not stopped since.")),
                .required("interruption", Schema.reference("SessionInterruption").orNull),
                .required(
                    "error",
                    Schema.object([.required("reason", .string()), .required("message", .string())], additional: true)
                        .orNull.described("What went wrong last, until it runs.")),
                .required("resolved", .array(of: .reference("SessionDelivery"))),
                .optional("hardwareCost", hardwareCost.orNull.described("As in replies; null: it is not started.")),
                .required("explanation", .array(of: .string())),
            ], additional: true
        ).described("A session as it is now: state/session/<id>/."),
    ]

    private static let preferredDataSource = Schema.string(minLength: 1, maxLength: 64).orNull.described(
        "Of a microphone: the id of one of its dataSources, or auto: the one on the side to which the session's camera "
            + "looks. Absent: auto."
    )

    private static let hardwareCost = Schema.number(min: 0)

    private static let outputID = Schema.string(minLength: 1, maxLength: 32)

    private static let outputOptions: [Schema.Property] = [
        .optional(
            "format",
            Schema.choice(
                ["native", "jpeg", "bgr", "rgb", "gray", "yuyv", "nv12", "i420", "gray16", "rgb48", "s16", "f32"]
            ).orNull
                .described(
                    "Absent: bgr for videoData, jpeg for preview; for audioData, which takes native, s16 and f32, what "
                        + "holds all of the microphone's."
                )),
        .optional("width", Schema.integer(min: 0, max: 16384).orNull),
        .optional("height", Schema.integer(min: 0, max: 16384).orNull),
        .optional("frameRate", Schema.reference("FrameRate").orNull.described("At most 100000.")),
        .optional("quality", Schema.integer(min: 1, max: 100).orNull),
        .optional("rate", Schema.integer(min: 4000, max: 384_000).orNull.described("Of audioData: frames a second.")),
        .optional("channels", Schema.integer(min: 1, max: 8).orNull.described("Of audioData.")),
        .optional(
            "whenDenied",
            Schema.choice(["blank"]).orNull.described(
                "Of movie: what the session's user may not have is black, or silence, in its movies.")),
        .optional(
            "preRoll",
            Schema.integer(min: 0, max: 10_000).orNull.described(
                "Of photo: milliseconds for which the pictures of its cameras are held while the session runs, for "
                    + "photos of a moment that is over; 0 if absent."
            )),
        .optional(
            "photoSettingsForSceneMonitoring",
            Schema.reference("SceneMonitoring").orNull.described(
                "Of photo: the settings for which the bus reports whether the scene needs flash or stabilization.")),
        .optional(
            "livePhotoCaptureEnabled",
            Schema.boolean.orNull.described("Of photo: its photos may be live ones; false if absent.")),
        .optional(
            "livePhotoCaptureSuspended",
            Schema.boolean.orNull.described(
                "Of photo: nothing of now is to be in any live photo's movie; false if absent.")),
        .optional(
            "livePhotoAutoTrimmingEnabled",
            Schema.boolean.orNull.described(
                "Of photo: the movies end where the camera is moved away; true if absent.")),
    ]
}
