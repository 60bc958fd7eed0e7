import BusProtocol
public import JSON

extension Client {
    /// What this user may do, by medium (`video`, `audio`, `libraryAdd`, `library`): `notDetermined`, `restricted`,
    /// `denied` or `authorized`.
    ///
    /// Of a bus that knows no permission everything is authorized.
    public func authorization(timeout: Duration = defaultTimeout) async throws(ClientError) -> [String: String] {
        guard greeting.features.contains(Feature.permission.rawValue) else { return greeting.authorization }
        return try await call("authorization.status", timeout: timeout)["authorization"]?.object?
            .compactMapValues(\.string) ?? [:]
    }

    /// Asks an administrator for permission.
    ///
    /// - Parameters:
    ///   - reason: a sentence that the administrator reads.
    ///   - wait: how long to wait for the answer; nil: not at all.
    ///   - timeout: for the bus's own answer, beyond that.
    /// - Returns: the status: `notDetermined` while nobody has answered.
    public func requestAuthorization(
        _ media: String = "video", reason: String, wait: Duration? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> String {
        var params: [String: JSONValue] = ["media": .string(media), "reason": .string(reason)]
        if let wait { params["wait"] = .number(Double(wait.clampedNanoseconds / 1_000_000)) }
        let answer = try await call("authorization.request", .object(params), timeout: timeout + (wait ?? .zero))
        return answer["status"]?.string ?? "notDetermined"
    }

    /// The requests that wait, and what is decided: {requests, decisions}. For administrators.
    public func authorizations(timeout: Duration = defaultTimeout) async throws(ClientError) -> JSONValue {
        try await call("authorization.list", timeout: timeout)
    }

    /// Allows a user something, or refuses it. For administrators.
    ///
    /// - Parameter once: only until the user has left the bus.
    /// - Returns: {uid, media, kept?}.
    public func decideAuthorization(
        uid: UInt32, _ media: [String], isGranted: Bool, once: Bool = false, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        var params: [String: JSONValue] = ["uid": JSONValue(uid), "media": JSONValue(media)]
        if once { params["once"] = true }
        let method = isGranted ? "authorization.grant" : "authorization.deny"
        return try await call(method, .object(params), timeout: timeout)
    }

    /// Forgets what was decided and asked about a user. For administrators.
    ///
    /// - Parameter media: empty: all of it.
    /// - Returns: {uid, media, kept?}, with the media that anything was forgotten of.
    public func resetAuthorization(
        uid: UInt32, _ media: [String] = [], timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        var params: [String: JSONValue] = ["uid": JSONValue(uid)]
        if !media.isEmpty { params["media"] = JSONValue(media) }
        return try await call("authorization.reset", .object(params), timeout: timeout)
    }

    /// Why nothing of that medium comes, if that is for want of permission.
    ///
    /// - Parameter waits: who has asked, or is just about to, is not refused yet.
    func lackOfPermission(_ media: String = "video", waits: Bool) async -> ClientError? {
        guard greeting.features.contains(Feature.permission.rawValue),
            let status = try? await authorization(timeout: .seconds(2))[media],
            status != "authorized", !waits || status != "notDetermined"
        else { return nil }
        let message: String
        switch status {
        case "notDetermined":
            message =
                "uid \(greeting.uid) has no permission for \(media) yet. "
                + "An administrator allows it with 'camerabus allow \(greeting.uid) \(media)'."
        case "denied":
            message =
                "An administrator has refused \(media) to uid \(greeting.uid). "
                + "An administrator allows it with 'camerabus allow \(greeting.uid) \(media)'."
        default:
            message =
                "The configuration refuses \(media) to uid \(greeting.uid). See [permission] in camerabus.toml."
        }
        return .refused(
            BusError(.unauthorized, message, ["status": .string(status), "needed": .string(media)]))
    }
}
