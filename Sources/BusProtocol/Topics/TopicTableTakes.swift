import JSON

extension TopicTable {
    /// What happens to a take.
    static let takeEvent = Schema.anyOf([
        named(
            "didStartSegment",
            [
                .required("segment", .string(minLength: 1)), .required("path", .string(minLength: 1)),
                .required("part", .integer(min: 1)),
            ]),
        named("recordProgress", Schema.takeProgress + [.required("duration", .number(min: 0))]),
        named("didEndSegment", Schema.takeSegmentEnd),
        named(
            "recordDurationLessMinRecordDuration",
            [.required("total", .number(min: 0)), .required("minDuration", .number(min: 0))]),
        named(
            "recordDurationLargerEqualMaxRecordDuration",
            [.required("total", .number(min: 0)), .required("maxDuration", .number(min: 0))]),
        named("didDeleteSegment", Schema.takeProgress),
        named("exportProgress", [.required("progress", .number(min: 0, max: 1))]),
        named("didFinishTake", Schema.takeEnd), named("didDiscardTake", []),
        .object(order + [.required("event", .string(minLength: 1))], additional: true)
            .described("Other events, of a newer bus."),
    ])

    private static func named(_ event: String, _ members: [Schema.Property]) -> Schema {
        .object(order + [.required("event", .constant(.string(event)))] + members, additional: true)
    }
}
