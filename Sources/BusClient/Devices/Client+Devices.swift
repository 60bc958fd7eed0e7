import BusProtocol
public import JSON

extension Client {
    /// All devices, as `device.list` describes them.
    public func devices(timeout: Duration = defaultTimeout) async throws(ClientError) -> [JSONValue] {
        try await call("device.list", timeout: timeout)["devices"]?.array ?? []
    }

    /// One device.
    public func device(_ device: String, timeout: Duration = defaultTimeout) async throws(ClientError) -> JSONValue {
        try await call("device.get", ["device": .string(device)], timeout: timeout)["device"] ?? .null
    }

    /// A device's format table.
    public func formats(_ device: String, timeout: Duration = defaultTimeout) async throws(ClientError) -> [JSONValue] {
        try await call("device.formats", ["device": .string(device)], timeout: timeout)["formats"]?.array ?? []
    }

    /// A device's controls with their ranges and values.
    public func controls(
        _ device: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> [JSONValue] {
        try await call("device.controls", ["device": .string(device)], timeout: timeout)["controls"]?.array ?? []
    }

    /// Gives a device another id, which it keeps.
    ///
    /// - Parameters:
    ///   - name: nil: the device goes by the id that the bus gives it.
    ///   - lock: a token that covers the device; nil: ``defaultLock``, else it must not be locked by another client.
    /// - Returns: {device}, as it is now.
    public func rename(
        _ device: String, to name: String?, lock: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        var params: [String: JSONValue] = [
            "device": .string(device), "name": name.map(JSONValue.string) ?? .null,
        ]
        if let token = lock ?? defaultLock { params["lock"] = .string(token) }
        return try await call("device.rename", .object(params), timeout: timeout)
    }

    /// What is to happen when something can't be had just as asked.
    public enum ConfigurationMode: String, Hashable, Sendable {
        /// Nothing is changed.
        case exact
        /// The nearest possible is taken, and told.
        case nearest
    }

    /// Changes formats, frame rates and controls, on all devices named or on none.
    ///
    /// - Parameters:
    ///   - changes: {device, activeFormat?, frameRate?, controls?} each.
    ///   - lock: a token that covers all of the devices; nil: ``defaultLock``.
    ///   - dryRun: only says what would come of it.
    /// - Returns: {verdict, generation, applied, adjusted}.
    public func configure(
        _ changes: [JSONValue], lock: String? = nil, mode: ConfigurationMode = .exact, dryRun: Bool = false,
        timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        var params: [String: JSONValue] = ["changes": .array(changes)]
        if let token = lock ?? defaultLock { params["lock"] = .string(token) }
        if mode != .exact { params["mode"] = .string(mode.rawValue) }
        if dryRun { params["dryRun"] = true }
        return try await call("device.configure", .object(params), timeout: timeout)
    }

    /// Changes controls of one device.
    ///
    /// - Parameters:
    ///   - controls: values by name; null presses a button.
    ///   - lock: a token that covers the device; nil: ``defaultLock``, else one for just this call.
    /// - Returns: {verdict, generation, applied, adjusted}.
    public func set(
        _ device: String, controls: [String: JSONValue], lock: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        var params: [String: JSONValue] = ["device": .string(device), "controls": .object(controls)]
        if let token = lock ?? defaultLock { params["lock"] = .string(token) }
        return try await call("device.set", .object(params), timeout: timeout)
    }
}
