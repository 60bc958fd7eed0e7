import JSON

extension TopicTable {
    /// The stages of a photo.
    static let photoEvent = Schema.anyOf([
        named(
            "willBeginCapture",
            [
                .required("resolved", .reference("PhotoResolved")), .required("expectedPhotoCount", .integer(min: 1)),
                .required("devices", .array(of: .string(), min: 1)), .required("owner", .reference("Holder")),
            ]),
        named("willCapturePhoto", []), named("didCapturePhoto", []),
        named("didFinishProcessingPhoto", [.required("photo", .reference("Photo"))]),
        named(
            "didFinishRecordingLivePhotoMovie",
            [.required("duration", .number(min: 0).described("Of the movie, seconds."))]),
        named(
            "didFinishProcessingLivePhotoToMovieFile",
            [
                .required("duration", .number(min: 0).described("Of the movie, seconds.")),
                .required(
                    "photoDisplayTime", .number(min: 0).described("Seconds from its beginning to the photo's moment.")),
                .required("livePhotoMovie", .reference("LivePhotoMovie")),
            ]),
        named(
            "didFinishCapture",
            [
                .required(
                    "error",
                    Schema.object(
                        [
                            .required("code", .integer()), .required("message", .string()),
                            .required("data", .object([.required("reason", .string())], additional: true)),
                        ], additional: true
                    ).orNull.described("As in the reply; null: nothing was adjusted.")),
                .required("photos", .integer(min: 0).described("The number of finished photos.")),
            ]),
        .object(order + [.required("event", .string(minLength: 1))], additional: true)
            .described("Other events, of a newer bus."),
    ])

    private static func named(_ event: String, _ members: [Schema.Property]) -> Schema {
        .object(order + [.required("event", .constant(.string(event)))] + members, additional: true)
    }
}
