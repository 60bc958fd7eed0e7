extension MethodTable {
    /// Pixel formats that clients' own frames can have.
    static let sourceFormats = [
        "BGR3", "RGB3", "GREY", "YUYV", "UYVY", "NV12", "YU12", "MJPG", "Y10", "Y12", "Y14", "Y16", "Y16 -BE", "Z16",
        "BA81", "GBRG", "GRBG", "RGGB", "BG10", "GB10", "BA10", "RG10", "BG12", "GB12", "BA12", "RG12", "BG14", "GB14",
        "GR14", "RG14", "BYR2", "GB16", "GR16", "RG16",
    ]

    static let sources = [
        Method(
            "source.create", "Creates a device for the caller's own frames; it ends with the caller's process.",
            params: .object([
                .required(
                    "name",
                    .string(minLength: 1, maxLength: 64).described(
                        "The name for people; what is or was a name of a device of the machine is refused.")),
                .required(
                    "format",
                    .object(
                        [
                            .required("pixelFormat", .choice(sourceFormats)),
                            .required("width", .integer(min: 1, max: 16384)),
                            .required("height", .integer(min: 1, max: 16384)),
                            .optional(
                                "orientation",
                                .integer(min: 0, max: 270).described(
                                    "Degrees clockwise to be upright: 0, 90, 180 or 270; absent: 0.")),
                            .optional("mirrored", .boolean),
                            .optional(
                                "metersPerStep",
                                .number(min: 0).described("Only of Z16: metres of one step; absent: not stated.")),
                        ] + Schema.colors + Schema.shape)),
                .optional(
                    "frameRate",
                    Schema.reference("FrameRate").described("Absent: frames come when they come.")),
            ]),
            result: .object(
                [
                    .required("device", .reference("DeviceID")), .required("uniqueID", .string()),
                    .required("path", .string().described("Of the Unix socket that the frames go to.")),
                    .required(
                        "bytes", .integer(min: 1).described("That a frame has; of compressed ones, at most.")),
                ], additional: true),
            feature: .sources, errors: [.deviceBusy, .workerCrashed, .cancelled]),
        Method(
            "source.delete", "Deletes a device that source.create made.",
            params: .object([.required("device", .reference("DeviceID"))]),
            result: .object([.optional("kept", .reference("Kept"))], additional: true), feature: .sources,
            errors: [.deviceNotFound]),
    ]
}
