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
        Meaning(.parseError, "The request is not valid JSON (RFC 8259), or nested too deeply."),
        Meaning(.invalidRequest, "The message is not a JSON-RPC 2.0 request that this protocol allows."),
        Meaning(.methodNotFound, "There is no such method."),
        Meaning(
            .invalidParams, "A member of params is missing, unknown or wrong.",
            [.required("path", .string()), .required("why", .string())]),
        Meaning(
            .internalError, "The bus failed; its log shows the cause.",
            [
                .optional(
                    "missing",
                    Schema.constant("ring").described("There are frames, but no shared memory for them."))
            ]),
    ]

    private static let devices = [
        Meaning(.deviceNotFound, "No device has this id.", [.required("device", .string())]),
        Meaning(.deviceDisconnected, "The device is not connected."),
        Meaning(
            .deviceInUse, "A program outside the bus uses the device.",
            [
                .optional(
                    "by",
                    Schema.array(of: .reference("Process"), min: 1).orNull.described(
                        "The programs that have opened it; null: the bus can see none."))
            ]),
        Meaning(.workerCrashed, "The device's worker ended during the request, or is being restarted."),
    ]

    private static let locks = [
        Meaning(
            .deviceBusy, "Another client has locked the device.",
            [
                .required("holder", .reference("Holder")),
                .required(
                    "queue", .integer(min: 0).described("The number of clients that already wait for the device.")),
            ]),
        Meaning(.lockRequired, "This change needs a lock on the device."),
        Meaning(
            .lockLost, "The lock has ended or never existed.",
            [.required("fence", .integer(min: 0).described("The number of the newest lock."))]),
        Meaning(
            .lockTimeout, "The device did not become free within wait.",
            [
                .required(
                    "holder", Schema.reference("Holder").orNull.described("null: it is free now, but too late.")
                ),
                .required("queue", .integer(min: 0).described("The number of clients that wait for the device.")),
            ]),
        Meaning(.cancelled, "The request was cancelled while it waited."),
    ]

    private static let configuration = [
        Meaning(
            .formatUnsupported, "The device or the rendition does not support this format.",
            [.required("nearest", .anyOf([.object([], additional: true), .string(), .null]))]),
        Meaning(
            .frameRateUnsupported, "The format does not support this frame rate.",
            [.required("ranges", .array(of: .reference("FrameRateRange")))]),
        Meaning(
            .controlUnsupported, "The device has no such control.", [.required("supported", .array(of: .string()))]),
        Meaning(
            .controlOutOfRange, "The value is outside of the control's range, or not on a step.",
            [
                .required("min", .number()), .required("max", .number()),
                .required(
                    "step",
                    .number().described(
                        "1: any integer in the range; 0: any number in the range.")),
                .optional("bounds", Schema.reference("Rectangle").described("Of a rectangle: where it can be.")),
            ]),
        Meaning(.controlReadOnly, "The control can't be set."),
        Meaning(
            .controlBusy, "The control can't be set in the current mode, or while it is active.",
            [.required("control", Schema.string().orNull)]),
    ]

    private static let sessions = [
        Meaning(
            .presetUnsupported, "A device of the session has no format for this preset.",
            [.required("supported", .array(of: .string()))]),
        Meaning(.sessionNotFound, "The session does not exist, or no longer."),
        Meaning(
            .interrupted, "There are no frames for now; they continue by themselves.",
            [.required("interruption", .string().described("As the reason of a session's interruption."))]),
        Meaning(.cannotAddInput, "The session can't have this input.", [.required("why", .string())]),
        Meaning(.cannotAddOutput, "The session can't have this output.", [.required("why", .string())]),
    ]

    private static let movies = [
        Meaning(.sessionNotRunning, "The session is not running.", [.required("session", .string())]),
        Meaning(
            .recordingInProgress,
            "The session or the camera's process already records a movie; the take records or is being finished; or a "
                + "movie is recorded of the camera whose format a photo would change.",
            [.optional("movie", .string().described("Which.")), .optional("take", .string())]),
        Meaning(
            .notRecording, "The movie does not exist, or no longer; or the take has no segment.",
            [.optional("movie", .string()), .optional("take", .string()), .optional("rig", .string())]),
        Meaning(.takeNotFound, "The take does not exist, or no longer.", [.required("take", .string())]),
        Meaning(
            .diskFull, "The disk has not enough free space.",
            [
                .required("free", Schema.integer(min: 0).orNull.described("Bytes; null: not known.")),
                .required("needed", Schema.integer(min: 0).orNull.described("Bytes that must be free.")),
            ]),
        Meaning(
            .pathNotAllowed,
            "This user may not have movies written or sent there; or files may not be read from there.",
            [.required("roots", .array(of: .string()).described("The allowed folders or URLs."))]),
    ]

    private static let photos = [
        Meaning(
            .photoSettingsReused, "There was already a request with this uniqueID.",
            [.required("uniqueID", .string())]),
        Meaning(
            .photoFormatUnavailable, "The camera's current format does not support this photo.",
            [
                .required(
                    "available",
                    .object(
                        [
                            .required("photo", .array(of: .string()).described("Encoded formats.")),
                            .required("raw", .array(of: .string()).described("Raw sensor formats, for dng.")),
                        ], additional: true))
            ]),
        Meaning(
            .momentNotHeld, "The frame of this moment is not held, or no longer.",
            [
                .required("device", .string()),
                .required("ago", .number(min: 0).described("Milliseconds, as requested.")),
                .required(
                    "preRoll", .integer(min: 0).described("Milliseconds for which frames are held; 0: none are held.")),
                .required(
                    "oldest",
                    Schema.number(min: 0).orNull.described(
                        "Milliseconds since the oldest held frame; null: no frame is held.")
                ),
            ]),
    ]

    private static let groups = [
        Meaning(.profileNotFound, "No profile has this name.", [.required("profile", .string())]),
        Meaning(.rigNotFound, "No rig has this name.", [.required("rig", .string())]),
        Meaning(
            .entryNotFound,
            "The capture library has no such entry of the caller, or the entry has no such file.",
            [
                .required("id", .string()),
                .optional("file", .string().described("The entry exists, but not this file of it.")),
            ]),
    ]

    private static let common = [
        Meaning(
            .unauthorized, "This user may not do that.",
            [
                .required("status", .string()), .required("needed", .string()),
                .optional(
                    "owner",
                    Schema.reference("UID").orNull.described("Whose it is; null: it belongs to the administrators.")),
            ]),
        Meaning(
            .limitExceeded, "A limit of the bus is exceeded.",
            [
                .required("limit", .string()), .optional("maximum", .integer(min: 0)),
                .optional("used", .integer(min: 0).described("Bytes, of libraryQuota.")),
            ]),
        Meaning(
            .versionUnsupported, "The other side uses another version of the protocol.",
            [.required("supported", .array(of: .integer(min: 1)))]),
        Meaning(.shuttingDown, "The bus is shutting down."),
    ]

    /// The document `schema/errors.json`.
    public static var table: JSONValue {
        Schema.document(["errors": .array(meanings.map(\.json))])
    }
}
