import JSON

extension Schema {
    /// What the capture library has.
    static let libraryDefinitions: [String: Schema] = [
        "LibraryID": .string(minLength: 1, maxLength: 64).described(
            "The id of an entry, which is the movie's or the photo's: \(DeviceID.form). Any other one, up to 64 long, "
                + "is never found."
        ),
        "LibraryDevice": .object(
            [
                .required("device", .string(minLength: 1)), .required("uniqueID", .string()),
                .optional("name", .string()),
            ], additional: true
        ).described("A device as it was called when something was recorded."),
        "LibraryPhoto": .object(
            [
                .required("uniqueID", .string(minLength: 1).described("Of the request that it was taken by.")),
                .required("index", .integer(min: 0).described("Which of its device's photos of that request.")),
                .required("width", .integer(min: 1)), .required("height", .integer(min: 1)),
                .optional("livePhotoMovie", Schema.reference("LivePhotoMovie").described("Of a live photo.")),
            ], additional: true
        ).described("What a photo is; further members are as photo.capture answers them."),
        "LibraryEntry": .object(
            [
                .required("id", .string(minLength: 1)), .required("kind", .string(minLength: 1)),
                .required("path", .string(minLength: 1).described("The file, absolute.")),
                .optional("sideCar", .string(minLength: 1).described("The file with a line for each frame, absolute.")),
                .optional(
                    "cover", .string(minLength: 1).described("Of a take: its first frame, a JPEG file, absolute.")),
                .optional(
                    "movie", .string(minLength: 1).described("Of a live photo: its movie, a MOV file, absolute.")),
                .required("state", .choice(LibraryState.all)),
                .optional("reason", .string(minLength: 1).described("Why it ended; absent: it hasn't.")),
                .optional("problem", .string().described("What is wrong with it, in a sentence.")),
                .required(
                    "devices", .array(of: .reference("LibraryDevice")).described("The cameras; the first leads.")),
                .optional("microphone", .reference("LibraryDevice")),
                .required("started", .integer().described("Nanoseconds since 1970.")),
                .required("duration", .number(min: 0).described("How long it plays, milliseconds; of a photo 0.")),
                .required("size", .integer(min: 0).described("Of its file, bytes.")),
                .required("fileType", .string(minLength: 1)),
                .optional("video", Schema.object([], additional: true).orNull),
                .optional("audio", Schema.object([], additional: true).orNull),
                .optional("photo", .reference("LibraryPhoto")),
                .optional("frames", .integer(min: 0)), .optional("dropped", .integer(min: 0)),
                .optional("session", .string()), .optional("rig", .string()), .optional("take", .string()),
                .optional("part", .integer(min: 1)),
                .required(
                    "owner",
                    .object(
                        [
                            .required("uid", .integer(min: 0)), .required("pid", .integer(min: 0)),
                            .required("name", .string()),
                        ], additional: true
                    ).described("The process that asked for it.")),
            ], additional: true
        ).described("Something that the capture library has."),
    ]
}
