extension MethodTable {
    private static let statuses = Schema.Property.required(
        "authorization", .map(of: .reference("Authorization")).described("By medium."))

    private static let decided = Schema.object(
        [
            .required("uid", .reference("UID")), .required("media", .array(of: .reference("AuthorizationMedia"))),
            .optional("kept", .reference("Kept")),
        ], additional: true)

    /// `authorization.*`
    static let authorization = [
        Method(
            "authorization.status", "Answers what the caller may do.",
            params: .object([.optional("media", .reference("AuthorizationMedia").described("Only about this one."))]),
            result: .object(
                [
                    .required("uid", .reference("UID")),
                    .required(
                        "role",
                        .choice(["none", "ask", "view", "control", "admin"]).described(
                            "What the configuration makes of the user.")), statuses,
                    .required(
                        "asked",
                        .array(of: .reference("AuthorizationMedia")).described("Media that wait for an answer.")),
                ], additional: true), needs: .nothing, feature: .permission, isRepeatable: true),
        Method(
            "authorization.request", "Asks an administrator for permission.",
            params: .object([
                .required("media", .reference("AuthorizationMedia")),
                .required(
                    "reason", .string(maxLength: 256).described("What for, in a sentence for the administrator.")),
                .optional(
                    "wait",
                    Schema.reference("Milliseconds").described(
                        "How long to wait for the answer at most; 0, the default: not at all.")),
            ]),
            result: .object(
                [
                    .required("media", .reference("AuthorizationMedia")),
                    .required(
                        "status", .reference("Authorization").described("notDetermined: nobody has answered yet.")),
                ], additional: true), needs: .nothing, feature: .permission, errors: [.cancelled]),
        Method(
            "authorization.list", "Answers the requests that wait, and what is decided.",
            result: .object(
                [
                    .required(
                        "requests", .array(of: .reference("AuthorizationRequest")).described("The oldest first.")),
                    .required("decisions", .array(of: .reference("AuthorizationDecision")).described("By uid.")),
                ], additional: true), admin: true, feature: .permission, isRepeatable: true),
        Method(
            "authorization.grant", "Allows a user something.",
            params: decision("once", "Only until the user has left the bus."), result: decided, admin: true,
            feature: .permission),
        Method(
            "authorization.deny", "Refuses a user something, or takes it back.",
            params: decision("once", "Only until the user has left the bus; may ask again then."), result: decided,
            admin: true, feature: .permission),
        Method(
            "authorization.reset", "Forgets what was decided and asked about a user, who may ask again.",
            params: .object([
                .required("uid", .reference("UID")),
                .optional("media", Schema.reference("AuthorizationMediaList").described("Absent: all of them.")),
            ]), result: decided, admin: true, feature: .permission),
    ]

    private static func decision(_ once: String, _ text: String) -> Schema {
        .object([
            .required("uid", .reference("UID")), .required("media", .reference("AuthorizationMediaList")),
            .optional(once, .boolean.described(text)),
        ])
    }
}
