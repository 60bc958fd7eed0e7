import JSON

extension MethodTable {
    private static let id = Schema.Property.required("id", .reference("LibraryID"))

    static let library = [
        Method(
            "library.list", "Returns the entries of the capture library, newest first.",
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
                    "prefix",
                    .string(minLength: 1, maxLength: 64).described(
                        "What the ids of the entries begin "
                            + "with.")),
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
                            "For administrators: entries that this bus can't read, and leaves as they are; absent: "
                                + "none."
                        )),
                ], additional: true), needs: .nothing, feature: .library, isRepeatable: true),
        Method(
            "library.get", "Returns one entry of the capture library.", params: .object([id]),
            result: .object([.required("entry", .reference("LibraryEntry"))], additional: true), needs: .nothing,
            feature: .library, errors: [.entryNotFound], isRepeatable: true),
        Method(
            "library.read", "Returns a part of a file of an entry, as an attachment.",
            params: .object([
                id, .optional("file", .choice(LibraryFileMember.all).described("Which of the entry's files; path.")),
                .optional("offset", .integer(min: 0).described("Bytes in front of the part; 0.")),
                .optional(
                    "length",
                    .integer(min: 0, max: Int64(BusLimits.maxLibraryPartBytes)).described(
                        "Bytes of the part, as far as there are any; 1 MiB. 0: only what is known of the file.")),
            ]),
            result: .object(
                [
                    .required("id", .string(minLength: 1)), .required("file", .string(minLength: 1)),
                    .required("name", .string(minLength: 1).described("Of the file, without its folder.")),
                    .required("size", .integer(min: 0).described("Bytes of the file.")),
                    .required("offset", .integer(min: 0).described("Bytes in front of the part.")),
                    .required(
                        "revision",
                        .string(minLength: 1, maxLength: 64).described(
                            "Of a-z, 0-9 and '-'. Another one: it is another file, or was written to; parts of both "
                                + "don't belong together."
                        )),
                    .required("state", .string(minLength: 1).described("Of the entry, as library.get answers it.")),
                    .required(
                        "attachments",
                        .array(
                            of: .object(
                                [
                                    .required("name", .string(minLength: 1)), .required("contentType", .string()),
                                    .required("bytes", .integer(min: 0)),
                                ], additional: true), max: 1
                        ).described("The part: less than was asked for at the end of the file alone.")),
                ], additional: true), needs: .nothing, feature: .libraryRead,
            errors: [.entryNotFound, .recordingInProgress, .pathNotAllowed], isRepeatable: true),
        Method(
            "library.delete", "Deletes an entry and its files.", params: .object([id]),
            result: .object(
                [
                    .required("id", .string(minLength: 1)),
                    .required("deleted", .array(of: .string()).described("The deleted files, absolute.")),
                ], additional: true), needs: .nothing, feature: .library,
            errors: [.entryNotFound, .recordingInProgress]),
    ]
}

/// The members of an entry that name files.
enum LibraryFileMember {
    static let all = ["path", "sideCar", "cover", "movie"]
}

/// What an entry of the capture library can be.
enum LibraryState {
    static let all = ["recording", "finished", "recovered", "damaged", "missing"]
}
