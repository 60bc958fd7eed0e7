import BusProtocol
public import JSON

extension Client {
    /// All rigs, each {name, owner, devices, tolerance, configured, complete}.
    public func rigs(timeout: Duration = defaultTimeout) async throws(ClientError) -> [JSONValue] {
        try await call("rig.list", timeout: timeout)["rigs"]?.array ?? []
    }

    /// Makes a rig, or changes one of this user's; administrators change any.
    ///
    /// - Parameters:
    ///   - devices: ids; the first leads.
    ///   - tolerance: how far from the lead's a frame of a set may be; nil: half of the lead's interval.
    /// - Returns: {rig, kept?}.
    public func setRig(
        _ name: String, devices: [String], tolerance: Duration? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        var params: [String: JSONValue] = ["name": .string(name), "devices": JSONValue(devices)]
        if let tolerance { params["tolerance"] = .number(tolerance / .milliseconds(1)) }
        return try await call("rig.set", .object(params), timeout: timeout)
    }

    /// Forgets a rig of this user's; administrators forget any.
    @discardableResult
    public func deleteRig(_ name: String, timeout: Duration = defaultTimeout) async throws(ClientError) -> JSONValue {
        try await call("rig.delete", ["name": .string(name)], timeout: timeout)
    }

    /// The same devices, with those of a rig in the place of its name.
    func expandingRigs(_ names: [String], timeout: Duration) async throws(ClientError) -> [String] {
        guard greeting.features.contains(Feature.rigs.rawValue) else { return names }
        let rigs = try await rigs(timeout: timeout)
        return names.flatMap { name in
            rigs.first { $0["name"]?.string == name }?["devices"]?.array?.compactMap { $0["id"]?.string } ?? [name]
        }
    }
}
