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
        ).described("The pressure on a device or the machine, and its causes."),
        "SystemPressureSources": .map(of: .choice(["trigger", "reading", "none"])).described(
            "By factor, how the bus observes it: reported by the kernel at once, read regularly, or not at all."),
    ]
}
