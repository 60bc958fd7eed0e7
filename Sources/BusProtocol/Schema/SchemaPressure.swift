extension Schema {
    /// The shapes of system pressure.
    static let pressureDefinitions: [String: Schema] = [
        "SystemPressureLevel": .choice(["nominal", "fair", "serious", "critical", "shutdown"]),
        "SystemPressureState": .object(
            [
                .required("level", .reference("SystemPressureLevel")),
                .required(
                    "factors",
                    .array(of: .string()).described(
                        "What has reached that level: systemTemperature, cameraTemperature, cpu, memory, io.")),
            ], additional: true
        ).described("How hard it is for a device, or the machine, to go on, and why."),
        "SystemPressureSources": .map(of: .choice(["trigger", "reading", "none"])).described(
            "By factor, how the bus learns of it: told by the kernel at once, read from time to time, or not at all."),
    ]
}
