public import JSON

/// Every method that this bus knows. Published by `bus.methods`; requests are checked against it before anything looks
/// at them.
public enum MethodTable {
    /// In the order in which the specification has them.
    public static let all: [Method] =
        bus + machines + devices + locks + configuration + cameras + profiles + rigs + sessions + movies + faults
        + sources
        + authorization + library + takes + photos

    private static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// The method of that name.
    public static subscript(name: String) -> Method? { byName[name] }

    /// The result of `bus.methods`: the methods, and under `$defs` the shapes that they refer to.
    public static var json: JSONValue {
        Schema.document(["protocol": JSONValue(protocolVersion), "methods": .array(all.map(\.json))])
    }

    /// The version of the protocol that this library speaks.
    public static let protocolVersion = 1
}

extension MethodTable {
    private static let bus = [
        Method(
            "bus.hello",
            "Introduces the client, and returns the bus's version, features and sockets.",
            params: .object([
                .required(
                    "client", .string(minLength: 1, maxLength: 128).described("The program's name, for people.")
                ),
                .optional("version", .integer(min: 1).described("The protocol version that the client needs.")),
            ]),
            result: .object(
                [
                    .required("server", .constant("CameraBus")), .required("version", .string()),
                    .required("protocol", .integer(min: 1)), .required("features", .array(of: .string())),
                    .required("you", .reference("Peer")),
                    .optional(
                        "remote",
                        .object(
                            [
                                .required("name", .string(minLength: 1)),
                                .required("role", .choice(["none", "view", "control", "admin"])),
                            ], additional: true
                        ).described("Of a client on another machine: the name and the role of its key.")),
                    .required("authorization", .map(of: .reference("Authorization")).described("By media type.")),
                    .required(
                        "endpoints",
                        .object(
                            [
                                .required("command", .string()), .required("events", .string()),
                                .required("media", .map(of: .string()).described("By device.")),
                            ], additional: true
                        ).described(
                            "Paths of Unix sockets; libzmq wants ipc:// before them. Over TCP: tcp://*:PORT, at the "
                                + "host that the client is connected to."
                        )),
                    .required("epoch", .string(minLength: 1)), .required("sequence", .integer(min: 0)),
                    .required("limits", .map(of: .integer(min: 0))),
                ], additional: true),
            needs: .nothing, errors: [.versionUnsupported]),
        Method("bus.ping", "Returns at once.", needs: .nothing),
        Method(
            "bus.cancel", "Cancels a waiting request of the same user; it ends with cancelled.",
            params: .object([.required("key", .string(minLength: 1, maxLength: BusLimits.maxKeyCharacters))]),
            result: .object(
                [.required("cancelled", .boolean.described("False: no such request is waiting."))], additional: true),
            needs: .nothing, feature: .keys),
        Method("bus.shutdown", "Ends the bus and its workers.", admin: true),
        Method(
            "bus.snapshot", "Returns all state at one moment.",
            params: .object([
                .optional(
                    "prefix", .string(maxLength: BusLimits.maxTopicBytes).described("Only topics with this prefix."))
            ]),
            result: .object(
                [
                    .required("epoch", .string(minLength: 1)), .required("sequence", .integer(min: 0)),
                    .required("state", .map(of: .any).described("Values by topic.")),
                ], additional: true), needs: .nothing, isRepeatable: true),
        Method(
            "bus.methods", "Returns the methods with their JSON Schemas.",
            result: .object([.required("methods", .array(of: .object([], additional: true)))], additional: true),
            needs: .nothing, isRepeatable: true),
        Method(
            "bus.metrics", "Returns counters and histograms.",
            result: .object(
                [
                    .required("counters", .map(of: .number())),
                    .required(
                        "histograms",
                        .map(
                            of: .object(
                                [
                                    .required(
                                        "bounds",
                                        .array(of: .number()).described("Upper bounds of all buckets but the last.")),
                                    .required("counts", .array(of: .integer(min: 0))), .required("sum", .number()),
                                    .required("count", .integer(min: 0)),
                                ], additional: true))),
                ], additional: true), needs: .nothing, isRepeatable: true),
    ]

    private static let machines = [
        Method(
            "bus.leave",
            "Ends everything of the caller, as the end of its process would: sessions, movies, photos, waiting "
                + "requests, and locks without a lease.",
            needs: .nothing, feature: .remote),
        Method(
            "bus.clock", "Returns the time of the bus's machine, and its largest error.",
            result: .object(
                [
                    .required("monotonic", .reference("Nanoseconds")),
                    .required("realtime", .integer().described("Nanoseconds since 1970.")),
                    .required("synchronized", .boolean.described("The clock is synchronized by NTP or PTP.")),
                    .required(
                        "error",
                        Schema.integer(min: 0).orNull.described(
                            "The largest error of realtime, nanoseconds; null: unknown.")),
                ], additional: true), needs: .nothing, feature: .remote, isRepeatable: true),
    ]

    private static let devices = [
        Method(
            "device.list", "Returns the devices, in the order in which they are offered.",
            params: .object([
                .optional("media", .choice(["video", "audio"])),
                .optional(
                    "type", .string(minLength: 1, maxLength: 64).described("A device's type, as in its state.")),
                .optional("position", .choice(["front", "back", "external", "unspecified"])),
            ]),
            result: .object(
                [
                    .required("devices", .array(of: .reference("Device"))),
                    .optional("count", .integer(min: 0)),
                    .optional(
                        "default", Schema.string().orNull.described("The id of the first that is connected.")),
                ], additional: true), needs: .nothing, isRepeatable: true),
        Method(
            "device.get", "Returns one device.", params: .object([.required("device", .reference("DeviceID"))]),
            result: .object([.required("device", .reference("Device"))], additional: true), needs: .nothing,
            errors: [.deviceNotFound], isRepeatable: true),
        Method(
            "device.rename", "Gives a device another id, or removes it, permanently.",
            params: .object([
                .required("device", .reference("DeviceID")),
                .required(
                    "name",
                    Schema.string(maxLength: 128).orNull.described(
                        "The alias: \(DeviceID.form); null or empty: the device goes by its own id again. A device of "
                            + "a client can't have what is or was a name of another device."
                    )),
                .optional(
                    "lock", Schema.reference("LockToken").described("Covers the device; needed while it is locked.")),
            ]),
            result: .object(
                [.required("device", .reference("Device")), .optional("kept", .reference("Kept"))], additional: true),
            feature: .names, errors: [.deviceNotFound, .deviceBusy, .lockRequired, .lockLost]),
        Method(
            "device.formats", "Returns a device's format table.",
            params: .object([.required("device", .reference("DeviceID"))]),
            result: .object(
                [
                    .required(
                        "formats",
                        .array(of: .anyOf([.reference("Format"), .reference("SoundFormat")])).described(
                            "The latter of a microphone."))
                ], additional: true),
            needs: .nothing, errors: [.deviceNotFound, .deviceDisconnected, .deviceInUse, .workerCrashed],
            isRepeatable: true),
        Method(
            "device.controls", "Returns a device's controls with ranges and values.",
            params: .object([.required("device", .reference("DeviceID"))]),
            result: .object(
                [
                    .required("controls", .array(of: .reference("Control")).described("The driver's.")),
                    .optional(
                        "cameraControls", .array(of: .reference("CameraControl")).described("The capture model's.")),
                    .optional("supports", .reference("Supports")),
                ], additional: true),
            needs: .nothing,
            errors: [.deviceNotFound, .deviceDisconnected, .deviceInUse, .workerCrashed], isRepeatable: true),
        Method(
            "device.who", "Returns the users of a device: clients of the bus, and programs outside it.",
            params: .object([.required("device", .reference("DeviceID"))]), result: .reference("Usage"),
            needs: .nothing,
            feature: .who, errors: [.deviceNotFound], isRepeatable: true),
    ]

    private static let locks = [
        Method(
            "device.lock", "Locks devices for configuration: all or none.",
            params: .object([
                .required("devices", .reference("Devices")),
                .optional(
                    "wait",
                    Schema.reference("Milliseconds").described(
                        "The longest time in the queue; 0, the default: do not wait.")
                ),
                .optional(
                    "lease",
                    .number(min: 100, max: 86_400_000).described(
                        "Milliseconds after which the lock ends unless renewed; absent: it ends with the process.")),
                .optional("note", .string(maxLength: 256).described("The purpose; everybody can read it.")),
            ]),
            result: .reference("LockResult"), feature: .locks,
            errors: [.deviceNotFound, .deviceBusy, .lockTimeout, .cancelled]),
        Method(
            "device.unlock", "Ends a lock.", params: .object([.required("lock", .reference("LockToken"))]),
            result: .object([.optional("kept", .reference("Kept"))], additional: true), needs: .nothing,
            feature: .locks, errors: [.lockLost]),
        Method(
            "device.renew", "Restarts a lock's lease, and returns the lock.",
            params: .object([.required("lock", .reference("LockToken"))]),
            result: .object(
                [
                    .required("expires", Schema.reference("Nanoseconds").orNull.described("null: it has no lease.")),
                    .required("fence", .integer(min: 1)), .required("devices", .array(of: .string())),
                    .required("holder", .reference("Holder")),
                ], additional: true),
            feature: .locks, errors: [.lockLost]),
        Method(
            "device.takeOver", "Takes devices from the client that has locked them.",
            params: .object([
                .required("devices", .reference("Devices")),
                .optional(
                    "lease",
                    .number(min: 100, max: 86_400_000).described(
                        "Milliseconds after which the lock ends unless renewed; absent: it ends with the process.")),
                .optional("note", .string(maxLength: 256).described("The purpose; everybody can read it.")),
            ]), result: .reference("LockResult"),
            admin: true,
            feature: .locks, errors: [.deviceNotFound]),
        Method(
            "device.locks", "Returns the current locks and the waiters.",
            result: .object(
                [
                    .required(
                        "locks", .array(of: .reference("Lock")).described("In the order in which they were taken.")),
                    .required("waiting", .array(of: .reference("LockWait")).described("In the order of the queue.")),
                ], additional: true),
            needs: .nothing, feature: .locks, isRepeatable: true),
    ]

    // device.configure needs a lock, so that nobody else can have one: it is never answered deviceBusy.
    private static let configureErrors: [BusError.Reason] =
        [.lockRequired, .lockLost, .deviceNotFound, .formatUnsupported, .frameRateUnsupported] + controlErrors

    // With a lock that does not cover the device: lockRequired. Without one: deviceBusy.
    private static let setErrors: [BusError.Reason] =
        [.deviceNotFound, .deviceBusy, .lockRequired, .lockLost] + controlErrors

    static let controlErrors: [BusError.Reason] = [
        .controlUnsupported, .controlOutOfRange, .controlReadOnly, .controlBusy, .deviceDisconnected, .deviceInUse,
        .workerCrashed,
    ]

    private static let configuration = [
        Method(
            "device.configure", "Changes formats, frame rates and controls of all named devices, or of none.",
            params: .object([
                .optional(
                    "lock",
                    Schema.reference("LockToken").described("Covers all devices named; without it: lockRequired.")),
                .required("changes", .array(of: .reference("Change"), min: 1, max: BusLimits.maxDevicesPerLock)),
                .optional(
                    "mode",
                    .choice(["exact", "nearest"]).described("exact, the default, refuses what can't be had just so.")),
                .optional("dryRun", .boolean.described("Changes nothing; only returns the result.")),
            ]),
            result: .reference("ConfigureResult"), feature: .configure, errors: configureErrors),
        Method(
            "device.set", "Changes controls of one device, under the given lock or one for this call only.",
            params: .object([
                .required("device", .reference("DeviceID")), .required("controls", .reference("ControlValues")),
                .optional("lock", .reference("LockToken")),
            ]),
            result: .reference("ConfigureResult"), feature: .configure, errors: setErrors),
    ]
}
