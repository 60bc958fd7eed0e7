import JSON

extension TopicTable {
    /// The header of a matched set, or of a frame that came after its set.
    static let frameSet = Schema.object(
        [
            .required("v", .constant(1)), .required("set", .string(minLength: 1, maxLength: DeviceID.maxBytes)),
            .required("rendition", .string(minLength: 1)), .required("stream", .string(minLength: 1)),
            .required("sequence", count.described("Counts this topic's messages within stream, without a hole.")),
            .required(
                "number", count.described("The set's own number within stream; a late frame has that of its set.")),
            .required("late", .boolean.described("A single frame, which came after its set.")),
            .required("monotonic", Schema.reference("Nanoseconds").described("The time of the lead's frame.")),
            .required("spread", count.described("Nanoseconds from the earliest of the frames to the latest.")),
            .required("tolerance", count.described("The largest distance of a frame from the lead's, nanoseconds.")),
            .required(
                "frames",
                .array(of: .anyOf([part, missing]), min: 1).described(
                    "One for each device of the rig, in its order; of a late frame's message the one alone.")),
        ], additional: true
    ).described("Payloads follow, one for each frame that is there.")

    private static let counters: [Schema.Property] = [
        .required("unmatched", count.described("Frames of this device that are in no set so far, within stream.")),
        .required("lateFrames", count.described("Frames of this device that went out late so far, within stream.")),
    ]

    private static let part = Schema.object(
        picture + counters + [
            .required("payload", count.described("Which of the payloads is its picture, from 0.")),
            .required("offset", .integer().described("Nanoseconds from the lead's frame to this one.")),
        ], additional: true
    ).described("A frame's own header, and its place in the set.")

    private static let missing = Schema.object(
        counters + [
            .required("device", .string(minLength: 1).described("Its id, or its uniqueID where it is not there.")),
            .required(
                "missing",
                .object(
                    [.required("reason", .string(minLength: 1)), .required("message", .string())], additional: true
                ).described("Why; late: it may still come.")),
        ], additional: true
    ).described("A device of which the set has no frame.")
}
