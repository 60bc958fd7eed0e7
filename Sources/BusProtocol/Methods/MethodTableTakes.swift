import JSON

extension MethodTable {
    private static let take = Schema.Property.required("take", .reference("TakeID"))

    private static let one = Schema.object([.required("take", .reference("Take"))], additional: true)

    private static let kept = Schema.Property.optional("kept", .reference("Kept"))

    private static let deleted = Schema.Property.required(
        "deleted", .array(of: .string()).described("The deleted files, absolute."))

    private static let milliseconds = Schema.number(min: 1, max: 9_000_000_000)

    static let takes = [
        Method(
            "take.create", "Creates an empty take; it is recorded in segments.",
            params: .object([
                .optional(
                    "session",
                    Schema.reference("SessionID").described(
                        "One with a movie output: of its camera. It need not "
                            + "run.")),
                .optional(
                    "device",
                    Schema.reference("DeviceID").described(
                        "A camera, or a microphone for sound alone; with session, which of its cameras.")),
                .optional(
                    "microphone",
                    Schema.reference("DeviceID").orNull.described(
                        "Absent: that of the session's movie output, if it has one; null: without sound.")),
                .optional(
                    "name",
                    .string(minLength: 1, maxLength: 150).described(
                        "Of its files within the library, without an ending. Absent: a new one.")),
                .optional("minDuration", milliseconds.described("The minimum length in milliseconds.")),
                .optional("maxDuration", milliseconds.described("The length in milliseconds at which recording ends.")),
                .optional(
                    "exportPreset",
                    Schema.reference("ExportPreset").described(
                        "The finished movie's picture is no larger. Absent: as it was recorded.")),
                .optional(
                    "detached",
                    .boolean.described("True: a segment does not end with the process that starts it.")
                ),
                .optional(
                    "orientation",
                    Schema.reference("VideoOrientation").described(
                        "The orientation of the picture. Absent: that of the session's connection, else unchanged.")
                ),
                .optional("mirrored", .boolean.described("The picture is shown mirrored.")),
            ]),
            result: .object([.required("take", .reference("Take")), kept], additional: true), needs: .nothing,
            feature: .takes,
            errors: [.deviceNotFound, .sessionNotFound, .deviceDisconnected, .deviceInUse, .workerCrashed]),
        Method(
            "take.record", "Starts a segment; returns when the first frame is in its file.",
            params: .object([take]), result: .reference("MovieStarted"), needs: .nothing, feature: .takes,
            errors: [
                .takeNotFound, .deviceNotFound, .sessionNotFound, .sessionNotRunning, .recordingInProgress,
                .notRecording, .diskFull, .formatUnsupported, .deviceDisconnected, .deviceInUse, .workerCrashed,
                .interrupted, .cancelled,
            ]),
        Method(
            "take.pause",
            "Ends the current segment; returns when its file is closed and on the disk. Without one it returns how the "
                + "last segment ended.",
            params: .object([take]), result: .reference("TakeSegmentEnd"), needs: .nothing, feature: .takes,
            errors: [.takeNotFound, .notRecording, .workerCrashed]),
        Method(
            "take.get", "Returns a take.", params: .object([take]), result: one, needs: .nothing, feature: .takes,
            errors: [.takeNotFound], isRepeatable: true),
        Method(
            "take.list", "Returns the takes that have not ended, in the order of their creation.",
            result: .object([.required("takes", .array(of: .reference("Take")))], additional: true),
            needs: .nothing, feature: .takes, isRepeatable: true),
        Method(
            "take.delete", "Deletes a segment with its files.",
            params: .object([take, .required("segment", .reference("MovieID"))]),
            result: .object([.required("take", .reference("Take")), deleted, kept], additional: true), needs: .nothing,
            feature: .takes, errors: [.takeNotFound, .recordingInProgress]),
        Method(
            "take.finish", "Joins the segments to one movie; returns when it is on the disk.",
            params: .object([
                take,
                .optional(
                    "name",
                    .string(minLength: 1, maxLength: 200).described(
                        "The file's name within the library. Absent, without path: the take's.")),
                .optional(
                    "path",
                    .string(minLength: 1, maxLength: 4096).described("The file, absolute; instead of name.")),
            ]),
            result: .reference("TakeMovie"), needs: .nothing, feature: .takes,
            errors: [.takeNotFound, .recordingInProgress, .notRecording, .pathNotAllowed, .diskFull]),
        Method(
            "take.discard", "Deletes a take with all of its segments.", params: .object([take]),
            result: .object([.required("take", .string(minLength: 1)), deleted, kept], additional: true),
            needs: .nothing,
            feature: .takes, errors: [.takeNotFound, .recordingInProgress]),
    ]
}
