import JSON

extension MethodTable {
    private static let id = Schema.Property.required("id", .reference("LibraryID"))

    static let library = [
        Method(
            "library.list", "Answers what was recorded, the newest first.",
            params: .object([
                .optional("since", .integer(min: 0).described("Nanoseconds since 1970: what began then or later.")),
                .optional("kind", .choice(["movie", "take", "photo"])),
                .optional(
                    "device",
                    .string(minLength: 1, maxLength: 256).described(
                        "A camera's or a microphone's id at that time, or its uniqueID.")),
                .optional("state", .choice(LibraryState.all)),
                .optional("take", .string(minLength: 1, maxLength: 64)),
                .optional(
                    "photo",
                    .string(minLength: 1, maxLength: 64).described("The uniqueID of a request: the photos of that.")),
                .optional(
                    "prefix", .string(minLength: 1, maxLength: 64).described("What the ids of the entries begin with.")),
                .optional("limit", .integer(min: 1, max: 1000).described("How many at most; 100.")),
            ]),
            result: .object(
                [
                    .required("entries", .array(of: .reference("LibraryEntry"))),
                    .required("more", .boolean.described("There are more than the limit.")),
                    .optional(
                        "unreadable",
                        .array(
                            of: .object(
                                [.required("id", .string(minLength: 1)), .required("why", .string())], additional: true)
                        ).described(
                            "For administrators: entries that this bus can't read, and leaves as they are; absent: none."
                        )),
                ], additional: true), needs: .nothing, feature: .library),
        Method(
            "library.get", "Answers one entry of the capture library.", params: .object([id]),
            result: .object([.required("entry", .reference("LibraryEntry"))], additional: true), needs: .nothing,
            feature: .library, errors: [.entryNotFound]),
        Method(
            "library.delete", "Removes the files of an entry, and then the entry.", params: .object([id]),
            result: .object(
                [
                    .required("id", .string(minLength: 1)),
                    .required("deleted", .array(of: .string()).described("The files that were there, absolute.")),
                ], additional: true), needs: .nothing, feature: .library,
            errors: [.entryNotFound, .recordingInProgress]),
    ]
}

/// What an entry of the capture library can be.
enum LibraryState {
    static let all = ["recording", "finished", "recovered", "damaged", "missing"]
}
