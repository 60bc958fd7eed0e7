public import JSON

extension BusError {
    /// What a reason means, and what `error.data` holds beside it.
    public struct Meaning: Hashable, Sendable {
        public var reason: Reason
        /// When it is given, in one sentence.
        public var summary: String
        /// The members that are always there; others may be.
        public var data: [Schema.Property]
        /// False for reasons whose methods don't exist yet.
        public var isInUse: Bool

        fileprivate init(_ reason: Reason, _ summary: String, _ data: [Schema.Property] = [], isInUse: Bool = true) {
            self.reason = reason
            self.summary = summary
            self.data = data
            self.isInUse = isInUse
        }

        /// The shape of `error.data`.
        public var schema: Schema {
            .object([.required("reason", .constant(.string(reason.rawValue)))] + data, additional: true)
        }

        public var json: JSONValue {
            [
                "reason": .string(reason.rawValue), "code": JSONValue(BusError(reason, "").code),
                "summary": .string(summary),
                "data": schema.json, "reserved": .bool(!isInUse),
            ]
        }
    }

    /// Every reason, in the order of the specification.
    public static let meanings: [Meaning] =
        jsonRPC + devices + locks + configuration + sessions + movies + photos + groups + common

    private static let jsonRPC = [
        Meaning(.parseError, "The request is no JSON (RFC 8259), or nested too deeply."),
        Meaning(.invalidRequest, "The message is no JSON-RPC 2.0 request as this protocol takes them."),
        Meaning(.methodNotFound, "There is no such method."),
        Meaning(
            .invalidParams, "A member of params is missing, unknown or wrong.",
            [.required("path", .string()), .required("why", .string())]),
        Meaning(
            .internalError, "The bus failed; its log says more.",
            [
                .optional(
                    "missing",
                    Schema.constant("ring").described("There are frames, but no memory to share them in."))
            ]),
    ]

    private static let devices = [
        Meaning(.deviceNotFound, "No device has this id.", [.required("device", .string())]),
        Meaning(.deviceDisconnected, "The device is gone."),
        Meaning(
            .deviceInUse, "A program beside the bus has the device.",
            [
                .optional(
                    "by",
                    Schema.array(of: .reference("Process"), min: 1).orNull.described(
                        "The programs that have it open; null: none that the bus may see."))
            ]),
        Meaning(.workerCrashed, "The device's worker ended during the request, or is being started again."),
    ]

    private static let locks = [
        Meaning(
            .deviceBusy, "Somebody else has the device locked.",
            [
                .required("holder", .reference("Holder")),
                .required("queue", .integer(min: 0).described("How many wait for the device already.")),
            ]),
        Meaning(.lockRequired, "This change needs a lock that covers the device."),
        Meaning(
            .lockLost, "The lock is over, or never was.",
            [.required("fence", .integer(min: 0).described("The number of the newest lock."))]),
        Meaning(
            .lockTimeout, "The device did not become free within wait.",
            [
                .required(
                    "holder", Schema.reference("Holder").orNull.described("null: nobody has it any more, but too late.")
                ),
                .required("queue", .integer(min: 0).described("How many wait for the device.")),
            ]),
        Meaning(.cancelled, "The request was given up while it waited."),
    ]

    private static let configuration = [
        Meaning(
            .formatUnsupported, "The device or the rendition can't have this format.",
            [.required("nearest", .anyOf([.object([], additional: true), .string(), .null]))]),
        Meaning(
            .frameRateUnsupported, "The format can't have this frame rate.",
            [.required("ranges", .array(of: .reference("FrameRateRange")))]),
        Meaning(
            .controlUnsupported, "The device has no such control.", [.required("supported", .array(of: .string()))]),
        Meaning(
            .controlOutOfRange, "The value is out of the control's range, or off its steps.",
            [
                .required("min", .number()), .required("max", .number()),
                .required(
                    "step",
                    .number().described(
                        "1 where any value between is taken; 0: of a control that takes fractions, likewise.")),
            ]),
        Meaning(.controlReadOnly, "The control can't be set."),
        Meaning(
            .controlBusy, "The control can't be set in the present mode, or while it is at work.",
            [.required("control", Schema.string().orNull)]),
    ]

    private static let sessions = [
        Meaning(
            .presetUnsupported, "A device of the session has no format for this preset.",
            [.required("supported", .array(of: .string()))]),
        Meaning(.sessionNotFound, "There is no such session, or not any more."),
        Meaning(
            .interrupted, "There are no pictures for now; they come again by themselves.",
            [.required("interruption", .string().described("As the reason of a session's interruption."))]),
        Meaning(.cannotAddInput, "The session can't have this input.", [.required("why", .string())]),
        Meaning(.cannotAddOutput, "The session can't have this output.", [.required("why", .string())]),
    ]

    private static let movies = [
        Meaning(.sessionNotRunning, "The session is not running.", [.required("session", .string())]),
        Meaning(
            .recordingInProgress,
            "The session, or the process of that camera, makes a movie already; the take records, or is being finished; a movie is made of the camera whose format a photo would change.",
            [.optional("movie", .string().described("Which.")), .optional("take", .string())]),
        Meaning(
            .notRecording, "There is no such movie, or not any more; the take has no segment.",
            [.optional("movie", .string()), .optional("take", .string())]),
        Meaning(.takeNotFound, "There is no such take, or not any more.", [.required("take", .string())]),
        Meaning(
            .diskFull, "There is no room for it on the disk.",
            [
                .required("free", Schema.integer(min: 0).orNull.described("Bytes; null: not known.")),
                .required("needed", Schema.integer(min: 0).orNull.described("Bytes that have to be free.")),
            ]),
        Meaning(
            .pathNotAllowed,
            "The movie would be where this user may have none written, or sent; or the file is not where files are given out.",
            [.required("roots", .array(of: .string()).described("Folders in which it may be, or URLs."))]),
    ]

    private static let photos = [
        Meaning(
            .photoSettingsReused, "There was a request with this uniqueID already.",
            [.required("uniqueID", .string())]),
        Meaning(
            .photoFormatUnavailable, "The camera's present format gives no such photo.",
            [
                .required(
                    "available",
                    .object(
                        [
                            .required("photo", .array(of: .string()).described("What is encoded.")),
                            .required("raw", .array(of: .string()).described("Sensor's pixels, for dng.")),
                        ], additional: true))
            ]),
        Meaning(
            .momentNotHeld, "The camera's picture of that moment is not held, or not any more.",
            [
                .required("device", .string()),
                .required("ago", .number(min: 0).described("Milliseconds, as it was asked for.")),
                .required(
                    "preRoll", .integer(min: 0).described("Milliseconds for which pictures are held; 0: they aren't.")),
                .required(
                    "oldest",
                    Schema.number(min: 0).orNull.described(
                        "Milliseconds since the oldest one that is held; null: none is.")
                ),
            ]),
    ]

    private static let groups = [
        Meaning(.profileNotFound, "No profile has this name.", [.required("profile", .string())]),
        Meaning(.rigNotFound, "No rig has this name.", [.required("rig", .string())]),
        Meaning(
            .entryNotFound,
            "The capture library has no such entry, or none that is the caller's; or not that file of it.",
            [
                .required("id", .string()),
                .optional("file", .string().described("The entry is there, and this file of it isn't.")),
            ]),
    ]

    private static let common = [
        Meaning(
            .unauthorized, "This user may not do that.",
            [.required("status", .string()), .required("needed", .string())]),
        Meaning(
            .limitExceeded, "More than the bus takes.",
            [.required("limit", .string()), .optional("maximum", .integer(min: 0))]),
        Meaning(
            .versionUnsupported, "The other side speaks another version of the protocol.",
            [.required("supported", .array(of: .integer(min: 1)))]),
        Meaning(.shuttingDown, "The bus is going down."),
    ]

    /// The document `schema/errors.json`.
    public static var table: JSONValue {
        Schema.document(["errors": .array(meanings.map(\.json))])
    }
}
