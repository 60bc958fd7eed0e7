import JSON

extension MethodTable {
    static let photos = [
        Method(
            "photo.capture",
            "Takes photos of one or more cameras at the same moment; returns when all are finished.",
            params: .object([
                .optional(
                    "device", Schema.reference("DeviceID").described("A camera; with session, which of its cameras.")),
                .optional(
                    "devices",
                    .array(of: .reference("DeviceID"), min: 1, max: BusLimits.maxDevicesPerPhoto).described(
                        "Several cameras, of one moment.")),
                .optional(
                    "session",
                    Schema.reference("SessionID").described(
                        "One with a photo output: of its cameras. It has to run.")),
                .optional("rig", Schema.reference("GroupName").described("Of all its cameras, of one moment.")),
                .optional("settings", Schema.reference("PhotoSettings")),
                .optional(
                    "deliver",
                    .array(of: .choice(["reply", "library"]), min: 1, max: 2).described(
                        "Where the photos go. Absent: into the library where the bus has one, else in the reply.")),
                .optional(
                    "name",
                    .string(minLength: 1, maxLength: 128).described(
                        "Of the files in the library, with or without their ending. Absent: a new one.")),
                .optional(
                    "lock",
                    Schema.reference("LockToken").described(
                        "Covers the devices, where settings change them for the photo (flash, bracket, highResolution, "
                            + "maxPhotoDimensions)."
                    )),
            ]),
            result: .reference("PhotoCapture"), needs: .nothing, feature: .photos,
            errors: [
                .deviceNotFound, .rigNotFound, .sessionNotFound, .sessionNotRunning, .photoSettingsReused,
                .photoFormatUnavailable, .momentNotHeld, .deviceBusy, .lockRequired, .lockLost, .controlUnsupported,
                .controlOutOfRange, .controlReadOnly, .controlBusy, .formatUnsupported, .recordingInProgress,
                .diskFull, .deviceDisconnected, .deviceInUse, .workerCrashed, .interrupted, .cancelled,
            ])
    ]
}
