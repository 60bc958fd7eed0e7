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
            "authorization.status", "Returns the permissions of the caller.",
            params: .object([.optional("media", .reference("AuthorizationMedia").described("Only this medium."))]),
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
                    "reason", .string(maxLength: 256).described("The purpose, as one sentence for the administrator.")),
                .optional(
                    "wait",
                    Schema.reference("Milliseconds").described(
                        "The longest time to wait for the answer; 0, the default: do not wait.")),
            ]),
            result: .object(
                [
                    .required("media", .reference("AuthorizationMedia")),
                    .required(
                        "status", .reference("Authorization").described("notDetermined: there is no answer yet.")),
                ], additional: true), needs: .nothing, feature: .permission, errors: [.cancelled]),
        Method(
            "authorization.list", "Returns the open requests and the decisions.",
            result: .object(
                [
                    .required(
                        "requests", .array(of: .reference("AuthorizationRequest")).described("The oldest first.")),
                    .required("decisions", .array(of: .reference("AuthorizationDecision")).described("By uid.")),
                ], additional: true), admin: true, feature: .permission, isRepeatable: true),
        Method(
            "authorization.grant", "Allows media to a user.",
            params: decision("once", "Only until the user's last process on the bus ends."), result: decided,
            admin: true,
            feature: .permission),
        Method(
            "authorization.deny", "Refuses media to a user, or takes a permission back.",
            params: decision(
                "once", "Only until the user's last process on the bus ends; then the user may ask again."),
            result: decided,
            admin: true, feature: .permission),
        Method(
            "authorization.reset", "Deletes the decisions and requests of a user. The user can request again.",
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
