extension MethodTable {
    static let profiles = [
        Method(
            "profile.save",
            "Stores the current settings of devices under a name; replaces the caller's profile of the same name.",
            params: .object([
                .required("name", .reference("GroupName")),
                .required("devices", .reference("Devices")),
            ]),
            result: .object(
                [.required("profile", .reference("Profile")), .optional("kept", .reference("Kept"))], additional: true),
            feature: .profiles, errors: [.deviceNotFound, .deviceDisconnected, .deviceInUse, .workerCrashed]),
        Method(
            "profile.apply",
            "Applies a profile to devices, all or none, under the given lock or one for this call only.",
            params: .object([
                .required("name", .reference("GroupName")),
                .optional(
                    "devices",
                    Schema.reference("Devices").described("Absent: the devices that it was saved from.")),
                .optional("lock", .reference("LockToken")),
                .optional(
                    "mode",
                    .choice(["exact", "nearest"]).described(
                        "exact, the default, refuses what can't be had just so; nearest leaves out what a device "
                            + "doesn't have."
                    )),
                .optional("dryRun", .boolean.described("Changes nothing; only returns the result.")),
            ]),
            result: .reference("ConfigureResult"), feature: .profiles,
            errors: [.profileNotFound, .deviceBusy, .formatUnsupported, .frameRateUnsupported]
                + [.lockRequired, .lockLost, .deviceNotFound] + controlErrors),
        Method(
            "profile.list", "Returns the profiles with their settings.",
            result: .object([.required("profiles", .array(of: .reference("Profile")))], additional: true),
            needs: .nothing, feature: .profiles, isRepeatable: true),
        Method(
            "profile.delete", "Deletes a profile of the caller; administrators delete any.",
            params: .object([.required("name", .reference("GroupName"))]),
            result: .object([.optional("kept", .reference("Kept"))], additional: true), feature: .profiles,
            errors: [.profileNotFound]),
    ]

    static let rigs = [
        Method(
            "rig.set",
            "Creates a rig, a named group of devices, or changes one of the caller's; the first device leads.",
            params: .object([
                .required("name", .reference("GroupName")),
                .required("devices", .reference("Devices")),
                .optional(
                    "tolerance",
                    .number(min: 0, max: 10_000).described(
                        "How many milliseconds a frame of a set may be from the lead's; absent: half of the lead's "
                            + "interval."
                    )),
            ]),
            result: .object(
                [.required("rig", .reference("Rig")), .optional("kept", .reference("Kept"))], additional: true),
            feature: .rigs, errors: [.deviceNotFound]),
        Method(
            "rig.delete", "Deletes a rig of the caller; administrators delete any.",
            params: .object([.required("name", .reference("GroupName"))]),
            result: .object([.optional("kept", .reference("Kept"))], additional: true), feature: .rigs,
            errors: [.rigNotFound]),
        Method(
            "rig.list", "Returns the rigs with their devices.",
            result: .object([.required("rigs", .array(of: .reference("Rig")))], additional: true), needs: .nothing,
            feature: .rigs, isRepeatable: true),
    ]
}
