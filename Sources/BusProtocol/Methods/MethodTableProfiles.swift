extension MethodTable {
    static let profiles = [
        Method(
            "profile.save", "Keeps how devices are set now, under a name, in the place of what had it.",
            params: .object([
                .required("name", .reference("GroupName")),
                .required("devices", .reference("Devices")),
            ]),
            result: .object(
                [.required("profile", .reference("Profile")), .optional("kept", .reference("Kept"))], additional: true),
            feature: .profiles, errors: [.deviceNotFound, .deviceDisconnected, .deviceInUse, .workerCrashed]),
        Method(
            "profile.apply",
            "Sets devices as a profile has it, all or none, under the lock given or one for just this call.",
            params: .object([
                .required("name", .reference("GroupName")),
                .optional(
                    "devices",
                    Schema.reference("Devices").described("Absent: those that it was saved of.")),
                .optional("lock", .reference("LockToken")),
                .optional(
                    "mode",
                    .choice(["exact", "nearest"]).described(
                        "exact, the default, refuses what can't be had just so; nearest leaves out what a device doesn't have."
                    )),
                .optional("dryRun", .boolean.described("Only says what would come of it.")),
            ]),
            result: .reference("ConfigureResult"), feature: .profiles,
            errors: [.profileNotFound, .deviceBusy, .formatUnsupported, .frameRateUnsupported]
                + [.lockRequired, .lockLost, .deviceNotFound] + controlErrors),
        Method(
            "profile.list", "Answers the profiles with their settings.",
            result: .object([.required("profiles", .array(of: .reference("Profile")))], additional: true),
            needs: .nothing, feature: .profiles, isRepeatable: true),
        Method(
            "profile.delete", "Forgets a profile.", params: .object([.required("name", .reference("GroupName"))]),
            result: .object([.optional("kept", .reference("Kept"))], additional: true), feature: .profiles,
            errors: [.profileNotFound]),
    ]

    static let rigs = [
        Method(
            "rig.set", "Makes a rig, a named group of devices, or changes one; the first device leads.",
            params: .object([
                .required("name", .reference("GroupName")),
                .required("devices", .reference("Devices")),
                .optional(
                    "tolerance",
                    .number(min: 0, max: 10_000).described(
                        "How many milliseconds a frame of a set may be from the lead's; absent: half of the lead's interval."
                    )),
            ]),
            result: .object(
                [.required("rig", .reference("Rig")), .optional("kept", .reference("Kept"))], additional: true),
            feature: .rigs, errors: [.deviceNotFound]),
        Method(
            "rig.delete", "Forgets a rig.", params: .object([.required("name", .reference("GroupName"))]),
            result: .object([.optional("kept", .reference("Kept"))], additional: true), feature: .rigs,
            errors: [.rigNotFound]),
        Method(
            "rig.list", "Answers the rigs with their devices.",
            result: .object([.required("rigs", .array(of: .reference("Rig")))], additional: true), needs: .nothing,
            feature: .rigs, isRepeatable: true),
    ]
}
