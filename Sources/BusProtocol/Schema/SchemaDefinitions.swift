extension Schema {
    /// The shapes that several methods and topics share: `$defs` of `bus.methods`.
    public static let definitions = [
        commonDefinitions, cameras, profileDefinitions, sessionDefinitions, faultDefinitions, authorization,
        pressureDefinitions, soundDefinitions, movieDefinitions, libraryDefinitions,
        takeDefinitions, photoDefinitions, formatDefinitions,
    ].reduce(into: [:]) {
        $0.merge($1) { first, _ in first }
    }

    private static let commonDefinitions: [String: Schema] = [
        // What clients send
        "DeviceID": .string(minLength: 1, maxLength: 128)
            .described(
                "The id of a device, as device.list gives it: \(DeviceID.form). Any other one, up to 128 long, is no "
                    + "device's: deviceNotFound."
            ),
        "Devices": .anyOf([
            .array(of: .reference("DeviceID"), min: 1, max: BusLimits.maxDevicesPerLock), .reference("DeviceID"),
        ]).described("One or more devices, each once; a bare string is one. The name of a rig stands for its devices."),
        "LockToken": .string(minLength: 1, maxLength: 128)
            .described("The secret that device.lock returned. Every client that knows it may use the lock."),
        "Milliseconds": .number(min: 0, max: 86_400_000).described("A time in milliseconds."),
        "FrameDuration": .string(minLength: 3, maxLength: 41)
            .described(
                "The time from one frame to the next, in seconds, as a fraction of positive integers: \"1/30\"."),
        "FormatWish": .anyOf([
            .string(minLength: 1, maxLength: 32),
            .object([.required("id", .string(minLength: 1, maxLength: 32))]),
            .object([
                .optional("pixelFormat", .string(minLength: 1, maxLength: 16)),
                .required("width", .integer(min: 1, max: 65535)), .required("height", .integer(min: 1, max: 65535)),
            ]),
            .reference("SoundFormatWish"),
        ]).described(
            "A format by its id in device.formats (a bare string, or {id}), or by size and, if it matters, pixel "
                + "format; of a microphone by sample format, rate and channels."
        ),
        "FrameRate": .anyOf([.number(min: 0.000001, max: 1_000_000), .string(minLength: 1, maxLength: 64)]).described(
            "Frames a second: a number, or the same in a string, also as a fraction, \"30000/1001\". A fraction below "
                + "1 is refused, as it can be a frame duration."
        ),
        "FrameRateWish": .anyOf([
            .number(min: 0.000001, max: 1_000_000), .string(minLength: 1, maxLength: 64),
            .object([
                .required("minFrameDuration", .reference("FrameDuration")),
                .optional("maxFrameDuration", .reference("FrameDuration")),
            ]),
            .object([
                .optional("minFrameDuration", .reference("FrameDuration")),
                .required("maxFrameDuration", .reference("FrameDuration")),
            ]),
        ]).described(
            "Frames a second, as FrameRate has them, or any rate between two frame durations."
        ),
        "ControlValue": .anyOf([
            .boolean, .number(), .string(maxLength: 4096), .array(of: .integer(), max: 65536), .null,
            .reference("Point"), .reference("WhiteBalanceGains"), .reference("Rectangle"),
        ]).described(
            "The value of a control; an item of a menu by its index or its name; null presses a button. Only controls "
                + "of the capture model take fractions and objects."
        ),
        "ControlValues": .map(of: .reference("ControlValue"), max: 256).described("Values by the name of the control."),
        "Change": .object([
            .required("device", .reference("DeviceID")), .optional("activeFormat", .reference("FormatWish")),
            .optional("frameRate", .reference("FrameRateWish")), .optional("controls", .reference("ControlValues")),
        ]).described("The change of one device; settings that are not named stay."),

        // What the bus says
        "Nanoseconds": .integer().described("CLOCK_MONOTONIC of the machine that the bus runs on, in nanoseconds."),
        "Peer": .object(
            [
                .required("uid", .integer(min: 0)), .required("gid", .integer(min: 0)),
                .required("pid", .integer(min: 0)),
            ],
            additional: true
        ).described("A process, as the kernel names it to the bus. A pid of 0 can't be seen from there."),
        "Holder": .object(
            [
                .required("uid", .integer(min: 0)), .required("gid", .integer(min: 0)),
                .required("pid", .integer(min: 0)), .required("name", .string()),
            ], additional: true
        ).described("The process that holds a lock, and the name that it gave itself in bus.hello, or its program's."),
        "Process": .object(
            [
                .required("uid", .integer(min: 0)), .required("pid", .integer(min: 0)), .required("name", .string()),
            ], additional: true
        ).described("A process, and the name that it gave itself in bus.hello, or its program's."),
        "Usage": .object(
            [
                .required("device", .string()), .required("node", Schema.string().orNull),
                .required(
                    "lock",
                    Schema.object(
                        [
                            .required("id", .string(minLength: 1)), .required("holder", .reference("Holder")),
                            .required("fence", .integer(min: 1)), .required("since", .reference("Nanoseconds")),
                            .required("note", Schema.string().orNull),
                        ], additional: true
                    ).orNull),
                .required(
                    "waiters",
                    .array(
                        of: .object(
                            [
                                .required("holder", .reference("Holder")), .required("devices", .array(of: .string())),
                                .required("note", Schema.string().orNull),
                            ], additional: true)
                    ).described("The clients that wait for a lock, in the order of the queue.")),
                .required(
                    "subscribers",
                    .array(
                        of: .object(
                            [
                                .required("uid", .integer(min: 0)), .required("pid", .integer(min: 0)),
                                .required("name", .string()),
                                .required(
                                    "renditions",
                                    .array(of: .string()).described("As the client spells them, at most 16.")),
                                .optional("movie", .string().described("Of a recorder: the movie that it makes.")),
                            ], additional: true)
                    ).described("Processes that subscribe to frames.")),
                .required(
                    "foreign",
                    .array(of: .reference("Process")).described(
                        "Processes outside the bus that have opened the device's node.")),
                .required(
                    "complete",
                    .boolean.described(
                        "False: the bus can't look into some processes, and there may be more foreign ones.")),
            ], additional: true
        ).described("The users of a device."),
        "ActiveFormat": .object(
            [
                .required("id", Schema.string().orNull.described("null: a format that is not in the table.")),
                .required("pixelFormat", .reference("PixelFormat")), .required("width", .integer(min: 1)),
                .required("height", .integer(min: 1)),
            ], additional: true),
        "PixelFormat": .string(minLength: 1).described(
            "The four-character code as V4L2 spells it (YUYV, MJPG), or 0x and eight hexadecimal digits where it has "
                + "no name."
        ),
        "FrameRateRange": .object(
            [
                .required("minFrameDuration", .reference("FrameDuration")),
                .required("maxFrameDuration", .reference("FrameDuration")),
                .optional("stepFrameDuration", Schema.reference("FrameDuration").orNull),
                .required("minFrameRate", .number(min: 0)), .required("maxFrameRate", .number(min: 0)),
            ], additional: true
        ).described(
            "From the shortest frame duration (the highest rate) to the longest; with stepFrameDuration only the "
                + "shortest plus whole multiples of it. The rates are the same in frames a second."
        ),
        "Format": .object(
            [
                .required("id", .string(minLength: 1)), .required("pixelFormat", .reference("PixelFormat")),
                .optional("title", .string().described("The driver's name for it.")),
                .required("width", .integer(min: 1)), .required("height", .integer(min: 1)),
                .optional(
                    "sizes",
                    Schema.object(
                        ["minWidth", "maxWidth", "stepWidth", "minHeight", "maxHeight", "stepHeight"].map {
                            .required($0, .integer(min: 1))
                        }, additional: true
                    ).orNull.described(
                        "The sizes of a format that has more than one; width and height are the largest then.")),
                .required("frameRates", .array(of: .reference("FrameRateRange"))),
                .optional("colorRange", Schema.choice(["video", "full"]).orNull),
                .optional(
                    "highResolutionStillImageDimensions",
                    Schema.object(
                        [.required("width", .integer(min: 1)), .required("height", .integer(min: 1))], additional: true
                    ).orNull.described("The largest still picture that it can take meanwhile.")),
                .optional("videoFieldOfView", Schema.number(min: 0).orNull.described("Across the width, in degrees.")),
                .optional("supportedVideoStabilizationModes", Schema.array(of: .string()).orNull),
                .optional("videoMaxZoomFactor", Schema.number(min: 1).orNull),
                .optional(
                    "videoZoomFactorUpscaleThreshold",
                    Schema.number(min: 0).orNull.described("From this zoom factor on the picture is enlarged.")),
                .optional(
                    "autoFocusSystem", Schema.choice(["none", "contrastDetection", "phaseDetection"]).orNull),
                .optional("minISO", Schema.number(min: 0).orNull), .optional("maxISO", Schema.number(min: 0).orNull),
                .optional("minExposureDuration", Schema.number(min: 0).orNull.described("Seconds.")),
                .optional("maxExposureDuration", Schema.number(min: 0).orNull.described("Seconds.")),
                .optional("videoHDRSupported", Schema.boolean.orNull),
                .optional(
                    "variant", .string().described("Which it is of several rows with one pixel format and size.")),
            ], additional: true
        ).described(
            "One row of the format table. frameRates is empty where the device tells none; null is what isn't known."),
        "Control": .object(
            [
                .required("name", .string(minLength: 1)), .required("title", .string()),
                .required("id", .integer(min: 0).described("V4L2_CID_*, or of the virtual device's own.")),
                .required(
                    "type",
                    .string().described(
                        "int, bool, menu, button, int64, str, bitmask, intmenu, u8, u16, u32, area, rect, or "
                            + "unknown.")),
                .required("category", .string()), .required("minimum", .integer()), .required("maximum", .integer()),
                .required("step", .integer()), .required("defaultValue", Schema.integer().orNull),
                .required("flags", .array(of: .string())),
                .optional(
                    "aliases",
                    .array(of: .string()).described("Other names that requests may use: those of other kernels.")),
                .optional(
                    "menu",
                    .array(
                        of: .object(
                            [
                                .required("index", .integer(min: 0)), .optional("name", .string()),
                                .optional("value", .integer()),
                            ], additional: true)
                    ).described("For menu items with a name, for intmenu items with a value.")),
                .optional("dimensions", .array(of: .integer(min: 0)).described("Of an array of values.")),
                .optional("bounds", Schema.reference("Rectangle").described("Of a rect: where it can be.")),
                .optional(
                    "defaultRectangle",
                    Schema.reference("Rectangle").described("Of a rect: where it is unless somebody sets it.")),
                .required("value", .reference("ControlValue")),
            ], additional: true
        ).described("A knob of a device. value is null where it can't be read."),
        "Worker": .object(
            [
                .required("pid", Schema.integer(min: 0).orNull),
                .required("state", .choice(["starting", "running", "restarting", "failed", "stopped"])),
                .required("restarts", .integer(min: 0)),
                .required("busySince", Schema.reference("Nanoseconds").orNull),
            ], additional: true
        ).described("The process that serves a device. busySince: since when its device has not answered."),
        "NotRestored": .object(
            [
                .required(
                    "path",
                    .string(minLength: 1).described("activeFormat, frameRate, or controls. and the control's name.")),
                .required("wanted", .any), .required("is", .any.described("null: it can't be read.")),
                .required("why", .string()),
            ], additional: true
        ).described("Something of the last committed configuration that could not be put back into the device."),
        "Lock": .object(
            [
                .required("id", .string(minLength: 1)), .required("devices", .array(of: .string())),
                .required("holder", .reference("Holder")), .required("fence", .integer(min: 1)),
                .required("note", Schema.string().orNull), .required("since", .reference("Nanoseconds")),
                .required("lease", Schema.number(min: 0).orNull.described("Milliseconds; null: bound to the process.")),
                .required("expires", Schema.reference("Nanoseconds").orNull),
            ], additional: true
        ).described("A lock, as all may see it: state/lock/<id>/."),
        "Device": .object(
            [
                .required("id", .string(minLength: 1, maxLength: 32)), .required("uniqueID", .string()),
                .required("name", .string()), .required("mediaType", .choice(["video", "audio"])),
                .required("type", .string()),
                .required("position", .choice(["front", "back", "external", "unspecified"])),
                .required("node", Schema.string().orNull), .required("driver", .string()), .required("bus", .string()),
                .required("connected", .boolean), .required("isOpen", .boolean), .required("isStreaming", .boolean),
                .required("stream", Schema.string().orNull),
                .optional(
                    "memory",
                    Schema.choice(["userptr", "mmap", "virtual"]).orNull.described(
                        "How its frames come into memory that readers share: by the driver itself (userptr), by a copy "
                            + "(mmap); "
                            + "null: it doesn't stream."
                    )),
                .required(
                    "activeFormat",
                    .anyOf([.reference("ActiveFormat"), .reference("ActiveSoundFormat"), .null])),
                .optional(
                    "formatDescription",
                    Schema.reference("FormatDescription").orNull.described(
                        "Of a camera: what it states of its pictures in its present format; null: not opened yet.")),
                .required("frameDuration", Schema.reference("FrameDuration").orNull),
                .required("frameRate", Schema.number(min: 0).orNull), .required("generation", .integer(min: 0)),
                .required(
                    "controls", Schema.reference("ControlValues").described("The driver's and the capture model's.")),
                .optional("supports", .reference("Supports")),
                .optional(
                    "dataSources",
                    .array(of: .reference("SoundDataSource")).described(
                        "Of a microphone: what it can be told to listen at.")),
                .required("asOf", Schema.reference("Nanoseconds").orNull),
                .required(
                    "lock",
                    Schema.object(
                        [
                            .required("id", .string(minLength: 1)), .required("holder", .reference("Holder")),
                            .required("fence", .integer(min: 1)), .required("since", .reference("Nanoseconds")),
                        ], additional: true
                    ).orNull),
                .optional(
                    "kernelPriority",
                    Schema.choice(["record", "default", "refused", "unsupported"]).orNull.described(
                        "Whether the kernel keeps other programs from changing it (record); null: it is closed.")),
                .optional("notRestored", .array(of: .reference("NotRestored"))),
                .optional("systemPressureState", .reference("SystemPressureState")),
                .optional("photo", Schema.reference("PhotoState").described("Of a camera.")),
                .required("worker", .reference("Worker")),
                .required(
                    "error",
                    Schema.object([.required("reason", .string()), .required("message", .string())], additional: true)
                        .orNull),
            ], additional: true
        ).described("A device as it is now: state/device/<id>/."),
        "Bus": .object(
            [
                .required("version", .string()), .required("epoch", .string()),
                .required("started", .reference("Nanoseconds")), .required("devices", .array(of: .string())),
                .optional(
                    "problems",
                    .array(
                        of: .object(
                            [.required("reason", .string(minLength: 1)), .required("message", .string())],
                            additional: true)
                    ).described("What is wrong with how the bus is set up.")),
                .optional("remote", .reference("RemotePermission")),
                .optional("systemPressureState", .reference("SystemPressureState")),
                .optional("systemPressureSources", .reference("SystemPressureSources")),
            ], additional: true
        ).described("The bus itself: state/bus/."),
        "LockWait": .object(
            [
                .required("devices", .array(of: .string())), .required("holder", .reference("Holder")),
                .required("note", Schema.string().orNull),
                .required("until", Schema.reference("Nanoseconds").described("When it gives up.")),
            ], additional: true
        ).described("Who waits for a lock."),
        "LockResult": .object(
            [
                .required("lock", .reference("LockToken")), .required("fence", .integer(min: 1)),
                .required("devices", .array(of: .string())), .required("holder", .reference("Holder")),
            ], additional: true),
        "ConfigureResult": .object(
            [
                .required("verdict", .choice(["valid", "adjusted"])), .optional("kept", .reference("Kept")),
                .required("generation", .map(of: .integer(min: 0)).described("By device.")),
                .required(
                    "applied",
                    .map(
                        of: .object(
                            [
                                .required(
                                    "activeFormat",
                                    .anyOf([.reference("ActiveFormat"), .reference("ActiveSoundFormat"), .null])),
                                .required("frameDuration", Schema.reference("FrameDuration").orNull),
                                .required("controls", .reference("ControlValues")),
                            ], additional: true)
                    ).described("By device, as read back from it.")),
                .required(
                    "adjusted",
                    .array(
                        of: .object(
                            [
                                .required("path", .string()), .required("asked", .any), .required("given", .any),
                                .required("why", .string()),
                            ], additional: true))),
            ], additional: true
        ).described("The result of the changes; of a dry run, the expected result."),
        "Kept": .boolean.described(
            "Only there if false: it is so, but could not be written to the disk, and ends with the bus."),
    ]
}
