extension MethodTable {
    private static let session = Schema.Property.required("session", .reference("SessionID"))
    private static let lock = Schema.Property.optional(
        "lock", Schema.reference("LockToken").described("Under it the session may set devices that it covers."))

    private static let question = Schema.anyOf([
        .reference("SessionAction"), .object([.required("switchCamera", Schema.reference("DeviceID").orNull)]),
    ]).described("An action, or a switch to that camera; null: to the one that would be taken.")

    static let sessions = [
        Method(
            "session.create", "Creates a session; it does not run before it is started.",
            params: .object([
                .optional(
                    "name", .string(minLength: 1, maxLength: 128).described("The purpose; everybody can read it.")),
                .optional("preset", .reference("SessionPreset")), .optional("priority", .reference("SessionPriority")),
                .optional(
                    "inputs",
                    .array(of: .reference("SessionInputWish"), max: 8).described(
                        "Absent: the default camera; empty: none yet.")),
                .optional(
                    "outputs",
                    .array(of: .reference("SessionOutputWish"), max: 16).described(
                        "Absent: one of videoData; empty: none yet.")),
                .optional(
                    "detached", .boolean.described("True: it does not end with the calling process.")),
            ]),
            result: .reference("SessionResult"), needs: .nothing, feature: .sessions,
            errors: [.deviceNotFound, .cannotAddInput, .cannotAddOutput, .presetUnsupported] + wishes + [.cancelled]),
        Method(
            "session.configure", "Changes a session: all actions or none.",
            params: .object([
                session, .required("actions", .array(of: .reference("SessionAction"), min: 1, max: 64)), lock,
            ]),
            result: .reference("SessionResult"), needs: .nothing, feature: .sessions,
            errors: [
                .sessionNotFound, .deviceNotFound, .cannotAddInput, .cannotAddOutput, .presetUnsupported,
                .controlUnsupported,
            ] + wishes + settings + locks),
        Method(
            "session.canAdd", "Returns whether an action, or a switch of cameras, is possible, and why not.",
            params: .object([session, .required("action", question)]),
            result: .object(
                [
                    .required("can", .boolean), .required("why", Schema.string().orNull),
                    .required(
                        "reason", Schema.string().orNull.described("The reason of the error that it would cause.")),
                ], additional: true),
            needs: .nothing, feature: .sessions, errors: [.sessionNotFound]),
        Method(
            "session.start",
            "Starts a session; returns when it runs, is interrupted, or waits for permission, after 5 seconds at most.",
            params: .object([session, lock]), result: .reference("SessionResult"), needs: .nothing, feature: .sessions,
            errors: [.sessionNotFound] + wishes + settings + locks),
        Method(
            "session.stop", "Stops a session.", params: .object([session]), result: .reference("SessionResult"),
            needs: .nothing, feature: .sessions, errors: [.sessionNotFound]),
        Method(
            "session.delete", "Stops and deletes a session.", params: .object([session]),
            result: .object(
                [.required("session", .string()), .optional("kept", .reference("Kept"))], additional: true),
            needs: .nothing, feature: .sessions, errors: [.sessionNotFound]),
        Method(
            "session.get", "Returns a session.", params: .object([session]), result: .reference("SessionResult"),
            needs: .nothing, feature: .sessions, errors: [.sessionNotFound], isRepeatable: true),
        Method(
            "session.list", "Returns the sessions, in the order of their creation.",
            result: .object([.required("sessions", .array(of: .reference("Session")))], additional: true),
            needs: .nothing, feature: .sessions, isRepeatable: true),
        Method(
            "session.switchCamera",
            "Switches a session to another camera; if that is not available, the session continues unchanged.",
            params: .object([
                session,
                .optional(
                    "device",
                    Schema.reference("DeviceID").described(
                        "Absent: from a camera that looks back to one that looks to the front, from any other to one "
                            + "that looks back."
                    )), lock,
            ]),
            result: .object(
                [
                    .required("session", .string()), .required("state", .reference("Session")),
                    .required("resolved", .array(of: .reference("SessionDelivery"))),
                    .required("explanation", .array(of: .string())),
                    .required("active", .string().described("The camera that the session has now.")),
                    .required("switched", .boolean),
                    .required(
                        "dropped",
                        .array(
                            of: .object(
                                [
                                    .required("path", .string()), .required("value", .any), .required("why", .string()),
                                ], additional: true)
                        ).described("Options that the new camera does not support.")),
                ], additional: true),
            needs: .nothing, feature: .sessions,
            errors: [
                .sessionNotFound, .deviceNotFound, .cannotAddInput, .deviceBusy, .deviceDisconnected, .deviceInUse,
                .workerCrashed, .interrupted, .cancelled,
            ] + wishes + locks),
    ]

    private static let wishes: [BusError.Reason] = [.formatUnsupported, .frameRateUnsupported]
    private static let locks: [BusError.Reason] = [.lockLost]
    private static let settings: [BusError.Reason] = [.controlBusy]
}
