extension MethodTable {
    private static let errors: [BusError.Reason] = [
        .deviceNotFound, .deviceBusy, .lockRequired, .lockLost, .controlUnsupported, .controlOutOfRange,
        .controlReadOnly, .controlBusy, .deviceDisconnected, .deviceInUse, .workerCrashed,
    ]

    private static let device: [Schema.Property] = [
        .required("device", .reference("DeviceID")),
        .optional(
            "lock", Schema.reference("LockToken").described("Covers the device; absent: one for just this call.")),
    ]

    /// What is done with a camera at once: focus and exposure at a point, and zoom ramps.
    static let cameras = [
        Method(
            "device.focus", "Focuses once at a point of the picture.",
            params: .object(device + [.required("point", .reference("Point"))]), result: .reference("ConfigureResult"),
            feature: .cameraControls, errors: errors),
        Method(
            "device.expose", "Exposes for a point of the picture, and locks that exposure when it has settled.",
            params: .object(
                device + [
                    .required("point", .reference("Point")),
                    .optional("thenLock", .boolean.described("Lock it when it has settled; absent: don't.")),
                ]),
            result: .object(
                [
                    .required(
                        "willLock",
                        .boolean.described("It will be locked: that was asked for, and the camera can.")),
                    .required("applied", .map(of: .object([], additional: true))),
                    .optional("kept", .reference("Kept")),
                ], additional: true
            ).described("As device.configure answers, and willLock."),
            feature: .cameraControls, errors: errors),
        Method(
            "device.resetFocusAndExposure",
            "Has focus and exposure be continuous and centred again, as far as the camera can.",
            params: .object(device),
            result: .object(
                [
                    .required("reset", .array(of: .string()).described("The controls that were set.")),
                    .required("applied", .map(of: .object([], additional: true))),
                    .optional("kept", .reference("Kept")),
                ], additional: true
            ).described("As device.configure answers, and reset."),
            feature: .cameraControls, errors: errors),
        Method(
            "device.zoomRamp", "Zooms smoothly to a factor; answers when it begins.",
            params: .object(
                device + [
                    .optional("factor", .number().described("The videoZoomFactor to go to; this or value.")),
                    .optional("value", .number(min: 0, max: 1).described("The zoomValue to go to.")),
                    .optional("rate", .number(min: 0.001, max: 1000).described("Doublings a second; absent: 1.")),
                ]),
            result: .object(
                [
                    .required("generation", .integer(min: 0)), .required("from", .number(min: 1)),
                    .required("to", .number(min: 1)), .required("rate", .number(min: 0)),
                    .required("milliseconds", .number(min: 0).described("How long it lasts.")),
                    .optional("kept", .reference("Kept")),
                ], additional: true),
            feature: .cameraControls, errors: errors),
        Method(
            "device.cancelZoomRamp", "Ends a zoom ramp where it is.", params: .object(device),
            result: .object([.optional("kept", .reference("Kept"))], additional: true),
            feature: .cameraControls, errors: errors),
    ]
}
