public import JSON

/// What is published where, and what its header looks like.
public enum TopicTable {
    /// A kind of topic.
    public struct Entry: Hashable, Sendable {
        /// With the parts that vary in angle brackets: `state/device/<id>/`.
        public var topic: String
        /// `events`, `media`, or `all`.
        public var socket: String
        /// One sentence.
        public var summary: String
        /// Of the second frame; nil: there is none.
        public var header: Schema?
        /// True if a payload follows the header.
        public var hasPayload = false

        public var json: JSONValue {
            [
                "topic": .string(topic), "socket": .string(socket), "summary": .string(summary),
                "header": header?.json ?? .null, "payload": .bool(hasPayload),
            ]
        }
    }

    /// All that this version publishes.
    public static let all: [Entry] = [
        Entry(topic: "state/bus/", socket: "events", summary: "The bus itself.", header: state("Bus")),
        Entry(topic: "state/device/<id>/", socket: "events", summary: "A device.", header: state("Device")),
        Entry(topic: "state/lock/<id>/", socket: "events", summary: "A lock.", header: state("Lock")),
        Entry(topic: "state/rig/<name>/", socket: "events", summary: "A rig.", header: state("Rig")),
        Entry(topic: "state/session/<id>/", socket: "events", summary: "A session.", header: state("Session")),
        Entry(
            topic: "state/movie/<id>/", socket: "events", summary: "A movie that is being recorded.",
            header: state("Movie")
        ),
        Entry(topic: "state/take/<id>/", socket: "events", summary: "A take.", header: state("Take")),
        Entry(
            topic: "state/authorization/<uid>/", socket: "events", summary: "The decisions and requests of a user.",
            header: state("UserAuthorization")),
        Entry(topic: "event/bus/", socket: "events", summary: "The bus ends.", header: event),
        Entry(
            topic: "event/device/<id>/", socket: "events", summary: "An event of a device.",
            header: deviceEvent),
        Entry(topic: "event/lock/<id>/", socket: "events", summary: "An event of a lock.", header: event),
        Entry(
            topic: "event/session/<id>/", socket: "events", summary: "An event of a session.",
            header: sessionEvent),
        Entry(
            topic: "event/movie/<id>/", socket: "events", summary: "An event of a movie.", header: movieEvent),
        Entry(topic: "event/take/<id>/", socket: "events", summary: "An event of a take.", header: takeEvent),
        Entry(topic: "event/photo/<uniqueID>/", socket: "events", summary: "A stage of a photo.", header: photoEvent),
        Entry(
            topic: "event/authorization/<uid>/", socket: "events", summary: "A request or a decision.",
            header: event),
        Entry(topic: "heartbeat/", socket: "events", summary: "Once a second.", header: busHeartbeat),
        Entry(topic: "heartbeat/", socket: "media", summary: "Once a second.", header: mediaHeartbeat),
        Entry(
            topic: "welcome/", socket: "all", summary: "The first message on a new connection that subscribed to it.",
            header: nil),
        Entry(
            topic: "ack/<nonce>/", socket: "all", summary: "Once, when a client subscribes to it.",
            header: .object(
                [.optional("error", refusal.described("Subscriptions of this connection are refused: this is why."))],
                additional: true)),
        Entry(
            topic: "frame/<device>/<rendition>/", socket: "media", summary: "A frame, or the reason why it is missing.",
            header: .anyOf([frame, failure]), hasPayload: true),
        Entry(
            topic: "buffer/<device>/<rendition>/", socket: "media",
            summary: "The place of a frame in shared memory, or the reason why it is missing.",
            header: .anyOf([buffer, failure])),
        Entry(
            topic: "set/<name>/<rendition>/", socket: "media",
            summary: "Frames of a rig's devices taken at the same time, each a payload, or why there are none.",
            header: .anyOf([frameSet, failure]), hasPayload: true),
        Entry(
            topic: "audio/<device>/<rendition>/", socket: "media", summary: "Sound, or why there is none.",
            header: .anyOf([sound, failure]), hasPayload: true),
        Entry(
            topic: "level/<device>/", socket: "media",
            summary: "The sound level, ten times a second, or why it is unknown.",
            header: .anyOf([level, failure])),
    ]

    /// The entry of a topic; nil for one that this version doesn't publish.
    ///
    /// - Parameter isMedia: on a device's media socket.
    public static func entry(_ topic: Topic, isMedia: Bool) -> Entry? {
        let name: String
        switch topic {
        case .state(.bus): name = "state/bus/"
        case .state(.device): name = "state/device/<id>/"
        case .state(.lock): name = "state/lock/<id>/"
        case .state(.rig): name = "state/rig/<name>/"
        case .state(.session): name = "state/session/<id>/"
        case .state(.movie): name = "state/movie/<id>/"
        case .state(.take): name = "state/take/<id>/"
        case .state(.authorization): name = "state/authorization/<uid>/"
        case .event(.bus): name = "event/bus/"
        case .event(.device): name = "event/device/<id>/"
        case .event(.lock): name = "event/lock/<id>/"
        case .event(.session): name = "event/session/<id>/"
        case .event(.movie): name = "event/movie/<id>/"
        case .event(.take): name = "event/take/<id>/"
        case .event(.photo): name = "event/photo/<uniqueID>/"
        case .event(.authorization): name = "event/authorization/<uid>/"
        case .heartbeat: name = "heartbeat/"
        case .welcome: name = "welcome/"
        case .ack: name = "ack/<nonce>/"
        case .level: name = "level/<device>/"
        case .media(let media) where media.kind == .set: name = "set/<name>/<rendition>/"
        case .media(let media): name = "\(media.kind.rawValue)/<device>/<rendition>/"
        }
        let sockets = isMedia ? ["media", "all"] : ["events", "all"]
        return all.first { $0.topic == name && sockets.contains($0.socket) }
    }

    /// The document `schema/topics.json`.
    public static var json: JSONValue { Schema.document(["topics": .array(all.map(\.json))]) }
}

extension TopicTable {
    static let order: [Schema.Property] = [
        .required("epoch", .string(minLength: 1)), .required("sequence", .integer(min: 1)),
        .required("previous", .integer(min: 0).described("0: the first on its topic.")),
    ]

    private static func state(_ definition: String) -> Schema {
        .object(
            order + [.required("value", Schema.reference(definition).orNull.described("null: it no longer exists."))],
            additional: true)
    }

    private static let event = Schema.object(
        order + [.required("event", .string(minLength: 1).described("What happened; further members belong to it."))],
        additional: true)

    private static let deviceEvent = Schema.object(
        order + [
            .required("event", .string(minLength: 1).described("What happened; further members belong to it.")),
            .optional(
                "cause",
                .string(minLength: 1).described(
                    "Of controlsChanged: configured (by order of a client), restored (it had been changed, and was put "
                        + "back), or external (by the camera itself or by another program)."
                )),
            .optional(
                "controls",
                .map(
                    of: .object(
                        [
                            .required("old", .reference("ControlValue")), .required("new", .reference("ControlValue")),
                        ], additional: true)
                ).described("Of controlsChanged: old and new value by the control's name; null: it can't be read.")),
            .optional(
                "described",
                .array(of: .string()).described(
                    "Of controlsChanged: controls whose flags, range or items are others now.")),
            .optional(
                "reason",
                .string(minLength: 1).described(
                    "Of exposureLockFailed: why the exposure was not locked when it was stable.")),
            .optional(
                "holder",
                Schema.reference("Holder").orNull.described(
                    "Of exposureLockFailed: the holder of the "
                        + "lock.")),
            .optional("resolution", .boolean.described("Of sourceChanged: the picture has another size.")),
            .optional("level", Schema.reference("SystemPressureLevel").described("Of systemPressureChanged.")),
            .optional("factors", .array(of: .string()).described("Of systemPressureChanged: what has reached it.")),
        ], additional: true)

    private static let sessionEvent = Schema.object(
        order + [
            .required(
                "event",
                .string(minLength: 1).described(
                    "didStartRunning, didStopRunning, wasInterrupted, interruptionEnded or runtimeError.")),
            .optional("reason", .string(minLength: 1).described("Of wasInterrupted.")),
            .optional("device", Schema.string().orNull.described("Of wasInterrupted: the affected input.")),
            .optional(
                "by",
                .any.described(
                    "Of wasInterrupted: {session or lock, holder}, {systemPressureState}, or null if the cause is "
                        + "unknown."
                )),
            .optional("message", .string().described("Of wasInterrupted: one sentence for people.")),
            .optional(
                "error",
                .object([.required("reason", .string()), .required("message", .string())], additional: true).described(
                    "Of runtimeError.")),
        ], additional: true)

    private static let movieEvent = Schema.anyOf([
        .object(
            order + [
                .required(
                    "event",
                    .choice([
                        "didStartRecording", "didPauseRecording", "didResumeRecording", "didDropFrames",
                        "didChangeSize", "didDisconnect", "didReconnect",
                    ])),
                .required("path", Schema.string(minLength: 1).orNull.described("null with url.")),
                .optional("url", .string(minLength: 1)),
                .optional("message", .string().described("Of didDisconnect: why.")),
                .optional(
                    "source",
                    .object([.required("width", .integer(min: 1)), .required("height", .integer(min: 1))])
                        .described("Of didChangeSize: the size of the camera's pictures now.")),
            ], additional: true),
        .object(
            order + [
                .required("event", .constant("didFinishRecording")), .required("reason", .string(minLength: 1)),
                .required("success", .boolean),
            ], additional: true
        ).described("With all members of MovieEnd."),
        .object(
            order + [.required("event", .string(minLength: 1))], additional: true
        ).described("Other events, of a newer bus."),
    ])

    private static let busHeartbeat = Schema.object(
        [
            .required("epoch", .string(minLength: 1)),
            .required(
                "latest", .map(of: .integer(min: 0)).described("The newest sequence under each prefix of topics.")),
            .required("monotonic", .reference("Nanoseconds")),
        ], additional: true)

    private static let mediaHeartbeat = Schema.object(
        [
            .required("device", .string(minLength: 1, maxLength: DeviceID.maxBytes)),
            .required("stream", Schema.string(minLength: 1).orNull), .required("streaming", .boolean),
            .required("lastFrame", Schema.reference("Nanoseconds").orNull),
            .required("monotonic", .reference("Nanoseconds")),
        ], additional: true)

    static let count = Schema.integer(min: 0)

    static let picture: [Schema.Property] =
        [
            .required("v", .constant(1)), .required("device", .string(minLength: 1, maxLength: DeviceID.maxBytes)),
            .required("rendition", .string(minLength: 1)), .required("stream", .string(minLength: 1)),
            .required("sequence", count), .required("captureSequence", count), .required("generation", count),
            .required(
                "timestamp",
                .object(
                    [
                        .required("monotonic", .reference("Nanoseconds")),
                        .required("realtime", .integer().described("CLOCK_REALTIME, nanoseconds.")),
                        .optional(
                            "presentation",
                            Schema.reference("Nanoseconds").described(
                                "When the picture is shown, on the clock of monotonic, which is when it is decoded. "
                                    + "Absent: the same.")),
                        .required("source", .choice(["startOfExposure", "endOfFrame", "dequeue"])),
                    ], additional: true)),
            .required("format", .reference("PixelFormat")), .required("width", .integer(min: 1)),
            .required("height", .integer(min: 1)),
            .required(
                "planes",
                .array(
                    of: .object(
                        [.required("offset", count), .required("stride", count), .required("bytes", count)],
                        additional: true), min: 1)),
            .required("dropped", count), .optional("keyframe", .boolean), .optional("zoom", .number(min: 1)),
            .optional("exposure", .any),
        ] + Schema.stated

    private static let frame = Schema.object(picture, additional: true).described("A picture follows.")

    private static let buffer = Schema.object(
        picture + [
            .required(
                "buffer",
                .object(
                    [
                        .required("ring", .string(minLength: 16, maxLength: 16)), .required("slot", count),
                        .required("offset", count), .required("bytes", count), .required("stamp", count),
                    ], additional: true))
        ], additional: true
    ).described("A picture lies there.")

    static let failure = Schema.object(
        [
            .required("v", .constant(1)), .required("device", .string(minLength: 1, maxLength: DeviceID.maxBytes)),
            .required("rendition", .string()),
            .required("error", refusal),
        ], additional: true
    ).described("Nothing follows: this is why.")

    private static let refusal = Schema.object(
        [
            .required("reason", .string(minLength: 1)), .required("message", .string()),
            .optional("data", .object([], additional: true)),
        ], additional: true)
}

extension Schema {
    /// A document of schemas that refer to ``definitions``.
    static func document(_ members: [String: JSONValue]) -> JSONValue {
        .object(
            members.merging(
                [
                    "$schema": "https://json-schema.org/draft/2020-12/schema",
                    "$defs": .object(definitions.mapValues(\.json)),
                ], uniquingKeysWith: { own, _ in own }))
    }
}
