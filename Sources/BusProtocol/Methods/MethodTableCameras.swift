extension MethodTable {
    private static let errors: [BusError.Reason] = [
        .deviceNotFound, .deviceBusy, .lockRequired, .lockLost, .controlUnsupported, .controlOutOfRange,
        .controlReadOnly, .controlBusy, .deviceDisconnected, .deviceInUse, .workerCrashed,
    ]

    private static let device: [Schema.Property] = [
        .required("device", .reference("DeviceID")),
        .optional(
            "lock", Schema.reference("LockToken").described("Covers the device; absent: a lock for this call only.")),
    ]

    /// What is done with a camera at once: focus and exposure at a point, and zoom ramps.
    static let cameras = [
        Method(
            "device.focus", "Focuses once at a point of the picture.",
            params: .object(device + [.required("point", .reference("Point"))]), result: .reference("ConfigureResult"),
            feature: .cameraControls, errors: errors),
        Method(
            "device.expose", "Exposes for a point of the picture, and on request locks the exposure when it is stable.",
            params: .object(
                device + [
                    .required("point", .reference("Point")),
                    .optional("thenLock", .boolean.described("Lock it when it is stable; absent: false.")),
                ]),
            result: .object(
                [
                    .required(
                        "willLock",
                        .boolean.described("It will be locked: requested, and supported by the camera.")),
                    .required("applied", .map(of: .object([], additional: true))),
                    .optional("kept", .reference("Kept")),
                ], additional: true
            ).described("The answer of device.configure, and willLock."),
            feature: .cameraControls, errors: errors),
        Method(
            "device.resetFocusAndExposure",
            "Sets focus and exposure back to continuous and centred, as far as the camera supports it.",
            params: .object(device),
            result: .object(
                [
                    .required("reset", .array(of: .string()).described("The controls that were set.")),
                    .required("applied", .map(of: .object([], additional: true))),
                    .optional("kept", .reference("Kept")),
                ], additional: true
            ).described("The answer of device.configure, and reset."),
            feature: .cameraControls, errors: errors),
        Method(
            "device.zoomRamp", "Zooms smoothly to a factor; returns when the zoom begins.",
            params: .object(
                device + [
                    .optional("factor", .number().described("The videoZoomFactor to go to; this or value.")),
                    .optional("value", .number(min: 0, max: 1).described("The zoomValue to go to.")),
                    .optional("rate", .number(min: 0.001, max: 1000).described("Doublings per second; absent: 1.")),
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
            "device.cancelZoomRamp", "Stops a zoom ramp at its current factor.", params: .object(device),
            result: .object([.optional("kept", .reference("Kept"))], additional: true),
            feature: .cameraControls, errors: errors),
    ]
}
