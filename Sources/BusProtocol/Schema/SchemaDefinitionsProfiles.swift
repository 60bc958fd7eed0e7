extension Schema {
    /// What profiles and rigs are.
    static let profileDefinitions: [String: Schema] = [
        "GroupName": .string(minLength: 1, maxLength: 128).described(
            "The name of a profile or a rig: \(DeviceID.form). Any other one, up to 128 long, is never found."),
        "Profile": .object(
            [
                .required("name", .string(minLength: 1)),
                .required("saved", .integer().described("Seconds since 1970.")),
                .required("devices", .array(of: .reference("DeviceSettings"), min: 1)),
                .required("owner", owner),
            ], additional: true
        ).described("Settings of devices under a name."),
        "DeviceSettings": .object(
            [
                .required("device", Schema.string().orNull.described("The device's id now; null: it is not there.")),
                .required("uniqueID", .string()), .required("name", .string()), .required("driver", .string()),
                .required(
                    "activeFormat",
                    Schema.object(
                        [
                            .required("pixelFormat", .reference("PixelFormat")), .required("width", .integer(min: 1)),
                            .required("height", .integer(min: 1)),
                        ], additional: true
                    ).orNull),
                .required("frameDuration", Schema.reference("FrameDuration").orNull),
                .required("controls", .reference("ControlValues")),
            ], additional: true
        ).described("How a device was set when its profile was saved."),
        "Rig": .object(
            [
                .required("name", .string(minLength: 1)),
                .required(
                    "devices",
                    .array(
                        of: .object(
                            [
                                .required("id", Schema.string().orNull.described("null: it is not there.")),
                                .required("uniqueID", .string()), .required("name", Schema.string().orNull),
                                .required("connected", .boolean),
                            ], additional: true), min: 1
                    ).described("The first leads.")),
                .required(
                    "tolerance",
                    Schema.number(min: 0).orNull.described("Milliseconds; null: half of the lead's interval.")),
                .required("owner", owner),
                .required("configured", .boolean.described("It stands in the configuration file.")),
                .required("complete", .boolean.described("All of its devices are connected.")),
            ], additional: true
        ).described("A named group of devices: state/rig/<name>/."),
    ]

    private static let owner = Schema.reference("UID").orNull.described(
        "Whose it is: only this user and administrators change it; null: only administrators.")
}
