import BusProtocol
public import JSON

extension Client {
    /// All profiles of settings, each {name, owner, saved, devices}.
    public func profiles(timeout: Duration = defaultTimeout) async throws(ClientError) -> [JSONValue] {
        try await call("profile.list", timeout: timeout)["profiles"]?.array ?? []
    }

    /// Stores the present settings of devices under a name. A profile of this user with that name is replaced;
    /// administrators replace any.
    ///
    /// - Parameter devices: ids, or names of rigs.
    /// - Returns: {profile, kept?}.
    public func saveProfile(
        _ name: String, of devices: [String], timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        try await call("profile.save", ["name": .string(name), "devices": JSONValue(devices)], timeout: timeout)
    }

    /// Sets devices as a profile has it, all or none.
    ///
    /// - Parameters:
    ///   - devices: ids, or names of rigs; empty: those that it was saved of.
    ///   - lock: a token that covers the devices; nil: ``defaultLock``, else one for just this call.
    ///   - dryRun: only says what would come of it.
    /// - Returns: {verdict, generation, applied, adjusted}.
    public func applyProfile(
        _ name: String, to devices: [String] = [], lock: String? = nil, mode: ConfigurationMode = .exact,
        dryRun: Bool = false, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        var params: [String: JSONValue] = ["name": .string(name)]
        if !devices.isEmpty { params["devices"] = JSONValue(devices) }
        if let token = lock ?? defaultLock { params["lock"] = .string(token) }
        if mode != .exact { params["mode"] = .string(mode.rawValue) }
        if dryRun { params["dryRun"] = true }
        return try await call("profile.apply", .object(params), timeout: timeout)
    }

    /// Forgets a profile of this user's; administrators forget any.
    @discardableResult
    public func deleteProfile(
        _ name: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        try await call("profile.delete", ["name": .string(name)], timeout: timeout)
    }
}
