extension MethodTable {
    /// What a virtual device can be told to suffer.
    public static let faultNames = [
        "stall", "crash", "busy", "slow", "refuse", "meddle", "unplug", "replug", "corrupt", "noSpace", "rate", "drift",
        "pressure", "none",
    ]

    /// The members that say which fault it is, and how bad.
    static let faultMembers: [Schema.Property] = [
        .required("fault", .choice(faultNames)),
        .optional(
            "milliseconds",
            Schema.reference("Milliseconds").described(
                "How long: of stall, noSpace, pressure and unplug (absent: for good), of busy (absent: the next start "
                    + "only), or of each slow call."
            )),
        .optional(
            "control",
            .string(minLength: 1, maxLength: 128).described(
                "The control that meddle sets, or that refuse is for (absent: whatever is changed next).")),
        .optional("value", Schema.reference("ControlValue").described("What meddle sets it to.")),
        .optional(
            "frames", .integer(min: 1, max: 1_000_000).described("How many frames corrupt damages (absent: one).")),
        .optional(
            "percent",
            .integer(min: 1, max: 1000).described("The rate at which frames really come, of the one that was set.")),
        .optional(
            "partsPerMillion",
            .integer(min: -100_000, max: 100_000).described("How much too fast the device's clock runs (drift).")),
        .optional(
            "level", Schema.reference("SystemPressureLevel").described("How much pressure the device says it is under.")
        ),
    ]

    static let faults = [
        Method(
            "fault.inject", "Makes a virtual device fail.",
            params: .object([.required("device", .reference("DeviceID"))] + faultMembers),
            admin: true, feature: .faults, errors: [.deviceNotFound, .workerCrashed]),
        Method(
            "fault.script", "Makes a virtual device fail at the times of a script, which starts now.",
            params: .object([
                .required("device", .reference("DeviceID")),
                .required("steps", .array(of: .reference("FaultStep"), min: 1, max: 256)),
            ]),
            result: .object([.required("started", .reference("Nanoseconds"))], additional: true),
            admin: true, feature: .faults, errors: [.deviceNotFound, .workerCrashed]),
        Method(
            "fault.list",
            "Returns the current or last script of faults of a virtual device, with its results.",
            params: .object([.required("device", .reference("DeviceID"))]),
            result: .object([.required("script", Schema.reference("FaultScript").orNull)], additional: true),
            admin: true, feature: .faults, errors: [.deviceNotFound, .workerCrashed]),
        Method(
            "fault.cancel", "Ends a script of faults; steps that are not due yet are cancelled.",
            params: .object([.required("device", .reference("DeviceID"))]),
            result: .object(
                [.required("cancelled", .boolean.described("False: no step was waiting."))], additional: true),
            admin: true, feature: .faults, errors: [.deviceNotFound, .workerCrashed]),
    ]
}

extension Schema {
    /// The shapes of scripts of faults.
    static let faultDefinitions: [String: Schema] = [
        "FaultStep": .object(
            [.required("at", Schema.reference("Milliseconds").described("Since the start of the script."))]
                + MethodTable.faultMembers
        ).described("A fault, and when it comes."),
        "FaultScript": .object(
            [
                .required("started", .reference("Nanoseconds")),
                .required("isRunning", .boolean.described("Whether a step is still to come.")),
                .required(
                    "steps",
                    .array(
                        of: .object(
                            [
                                .required("at", .reference("Milliseconds")),
                                .required("fault", .choice(MethodTable.faultNames)),
                                .required("state", .choice(["waiting", "done", "failed"])),
                                .optional("why", .string()),
                            ], additional: true))),
            ], additional: true
        ).described("A script of faults; its steps as they were given, in the order of their times."),
    ]
}
