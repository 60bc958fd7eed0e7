extension Schema {
    /// The shapes of permission.
    static let authorization: [String: Schema] = [
        "Authorization": .choice(["notDetermined", "restricted", "denied", "authorized"]),
        "AuthorizationMedia": .choice(["video", "audio", "libraryAdd", "library"]),
        "AuthorizationMediaList": .anyOf([
            .array(of: .reference("AuthorizationMedia"), min: 1, max: 4), .reference("AuthorizationMedia"),
        ]).described("One or more media; a bare string is one."),
        "UID": .integer(min: 0, max: 4_294_967_294).described("The number of a user on the bus's machine."),
        "RemotePermission": .object(
            ["view", "control", "admin"].map { .required($0, remoteGrant) }, additional: true
        ).described("What clients on other machines may do, by the role of their key or token."),
        "UserAuthorization": .object(
            [
                .required("uid", .reference("UID")),
                .required(
                    "decided",
                    .map(
                        of: .object(
                            [
                                .required("status", .choice(["authorized", "denied"])),
                                .required("once", .boolean.described("It ends when the user has left the bus.")),
                                .required("since", .integer().described("Seconds since 1970.")),
                            ], additional: true)
                    ).described("What administrators have decided, by medium.")),
                .required(
                    "asked", .array(of: .reference("AuthorizationMedia")).described("Media that wait for an answer.")),
            ], additional: true
        ).described("What is decided and asked about a user, as all may see it: state/authorization/<uid>/."),
        "AuthorizationRequest": .object(
            [
                .required("uid", .reference("UID")),
                .required("media", .reference("AuthorizationMedia")),
                .required(
                    "reason",
                    Schema.string().orNull.described("The purpose; null: the user tried to use it, and the bus asks.")),
                .required("pid", .integer(min: 0)), .required("program", .string()),
                .required("since", .integer().described("Seconds since 1970.")),
            ], additional: true
        ).described("A request that waits for an administrator's answer."),
        "AuthorizationDecision": .object(
            [
                .required("uid", .reference("UID")),
                .required("media", .reference("AuthorizationMedia")),
                .required("status", .choice(["authorized", "denied"])), .required("once", .boolean),
                .required("by", .reference("UID").described("The administrator who decided.")),
                .required("since", .integer().described("Seconds since 1970.")),
            ], additional: true),
    ]

    private static let remoteGrant = Schema.object(
        [
            .required(
                "role", .choice(["none", "view", "control", "admin"]).described("The role after the bus's limit.")),
            .required("media", .array(of: .reference("AuthorizationMedia")).described("Those that are authorized.")),
        ], additional: true)
}
