import JSON

extension MethodTable {
    private static let take = Schema.Property.required("take", .reference("TakeID"))

    private static let one = Schema.object([.required("take", .reference("Take"))], additional: true)

    private static let deleted = Schema.Property.required(
        "deleted", .array(of: .string()).described("The files that were there, absolute."))

    private static let milliseconds = Schema.number(min: 1, max: 9_000_000_000)

    static let takes = [
        Method(
            "take.create", "Makes a take, which is recorded in segments; nothing is recorded yet.",
            params: .object([
                .optional(
                    "session",
                    Schema.reference("SessionID").described("One with a movie output: of its camera. It need not run.")),
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
                .optional("minDuration", milliseconds.described("Milliseconds: how long it is to be at least.")),
                .optional("maxDuration", milliseconds.described("Milliseconds: where recording ends by itself.")),
                .optional(
                    "exportPreset",
                    Schema.reference("ExportPreset").described(
                        "The finished movie's picture is no larger. Absent: as it was recorded.")),
                .optional(
                    "detached",
                    .boolean.described("True: a segment outlives the process that asks for it; else it ends with that.")
                ),
                .optional(
                    "orientation",
                    Schema.reference("VideoOrientation").described(
                        "How the picture is to be shown. Absent: as the session's connection has it, else as it comes.")
                ),
                .optional("mirrored", .boolean.described("It is to be shown mirrored.")),
            ]),
            result: one, needs: .nothing, feature: .takes,
            errors: [.deviceNotFound, .sessionNotFound, .deviceDisconnected, .deviceInUse, .workerCrashed]),
        Method(
            "take.record", "Begins a segment, and answers when the first frame is in its file.",
            params: .object([take]), result: .reference("MovieStarted"), needs: .nothing, feature: .takes,
            errors: [
                .takeNotFound, .deviceNotFound, .sessionNotFound, .sessionNotRunning, .recordingInProgress,
                .notRecording, .diskFull, .formatUnsupported, .deviceDisconnected, .deviceInUse, .workerCrashed,
                .interrupted, .cancelled,
            ]),
        Method(
            "take.pause",
            "Ends the segment that is recorded, and answers when its file is closed and on the disk; where there is none, how the last one ended.",
            params: .object([take]), result: .reference("TakeSegmentEnd"), needs: .nothing, feature: .takes,
            errors: [.takeNotFound, .notRecording, .workerCrashed]),
        Method(
            "take.get", "Answers a take.", params: .object([take]), result: one, needs: .nothing, feature: .takes,
            errors: [.takeNotFound], isRepeatable: true),
        Method(
            "take.list", "Answers the takes that are not over, in the order in which they were made.",
            result: .object([.required("takes", .array(of: .reference("Take")))], additional: true),
            needs: .nothing, feature: .takes, isRepeatable: true),
        Method(
            "take.delete", "Throws a segment away, with its files.",
            params: .object([take, .required("segment", .reference("MovieID"))]),
            result: .object([.required("take", .reference("Take")), deleted], additional: true), needs: .nothing,
            feature: .takes, errors: [.takeNotFound, .recordingInProgress]),
        Method(
            "take.finish", "Joins the segments into one movie, and answers when that is on the disk.",
            params: .object([
                take,
                .optional(
                    "name",
                    .string(minLength: 1, maxLength: 200).described(
                        "The file's name within the library. Absent, without path: the take's.")),
                .optional(
                    "path",
                    .string(minLength: 1, maxLength: 4096).described("The file, absolute, in the place of name.")),
            ]),
            result: .reference("TakeMovie"), needs: .nothing, feature: .takes,
            errors: [.takeNotFound, .recordingInProgress, .notRecording, .pathNotAllowed, .diskFull]),
        Method(
            "take.discard", "Throws a take away with all of its segments.", params: .object([take]),
            result: .object([.required("take", .string(minLength: 1)), deleted], additional: true), needs: .nothing,
            feature: .takes, errors: [.takeNotFound, .recordingInProgress]),
    ]
}
