import BusProtocol
public import JSON

/// A session of the bus: its id and the newest answer about it.
public struct ClientSession: Hashable, Sendable {
    public let id: String
    /// As `state/session/<id>/` has it.
    public var state: JSONValue
    /// What each output gets, or would if the session were started: {output, type, device, topic, rendition, width,
    /// height, …}.
    public var resolved: [JSONValue]
    /// What part of its bandwidth the fullest USB bus of the session's cameras has to give, with all that streams
    /// beside, or would if the session were started: above 1 it can't run, 0 means that none is on USB.
    public var hardwareCost: Double
    /// Why, in sentences.
    public var explanation: [String]
    /// False: it is in force, but could not be written to the disk. The next bus may use the earlier value.
    public var isKept: Bool

    /// Whether it ran, was interrupted, …: `stopped`, `starting`, `running`, `interrupted` or
    /// `waitingForAuthorization`.
    public var runState: String { state["state"]?.string ?? "" }

    init(_ json: JSONValue) throws(ClientError) {
        guard let id = json["session"]?.string, let state = json["state"] else {
            throw .unreadable("The answer of the bus is invalid: it contains no session.")
        }
        self.id = id
        self.state = state
        resolved = json["resolved"]?.array ?? []
        hardwareCost = json["hardwareCost"]?.double ?? 0
        explanation = json["explanation"]?.array?.compactMap(\.string) ?? []
        isKept = json["kept"]?.bool ?? true
    }

    /// What to read frames of: the device and the rendition of an output, by its id; nil: of the first that has any.
    public func frames(of output: String? = nil) -> (device: String, rendition: String)? {
        delivery(of: output, "video")
    }

    /// What to listen to, likewise: for ``Client/sound(_:_:silence:timeout:)``.
    public func sound(of output: String? = nil) -> (device: String, rendition: String)? {
        delivery(of: output, "audio")
    }

    /// What a camera delivers to the session: {pixelFormat, width, height, orientation, mirrored, colorPrimaries, …},
    /// which `FormatExtensions` reads.
    ///
    /// - Parameter device: an input; nil: the first that delivers pictures.
    /// - Returns: nil: it delivers nothing now, or is a microphone.
    public func formatDescription(of device: String? = nil) -> JSONValue? {
        let inputs = (state["inputs"]?.array ?? []).filter { device == nil || $0["device"]?.string == device }
        return inputs.compactMap { $0["formatDescription"] }.first { !$0.isNull }
    }

    private func delivery(of output: String?, _ media: String) -> (device: String, rendition: String)? {
        for delivery in resolved where output == nil || delivery["output"]?.string == output {
            guard delivery["mediaType"]?.string ?? "video" == media else { continue }
            if let device = delivery["device"]?.string, let rendition = delivery["rendition"]?.string {
                return (device, rendition)
            }
        }
        return nil
    }
}

extension Client {
    /// Makes a session, which ends with this process unless `detached` is among the wishes; it does not run before it
    /// is started.
    ///
    /// Where the bus ends before it has answered, the next one is asked for the same one.
    ///
    /// - Parameter wishes: the params of `session.create`: name, preset, priority, inputs, outputs, detached.
    public func createSession(
        _ wishes: [String: JSONValue] = [:], timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> ClientSession {
        let answer = try await patientCall("session.create", .object(wishes), timeout: timeout) { made in
            made["session"].map { [("session.delete", ["session": $0])] } ?? []
        }
        return try ClientSession(answer)
    }

    /// All sessions, in the order in which they were made.
    public func sessions(timeout: Duration = defaultTimeout) async throws(ClientError) -> [JSONValue] {
        try await call("session.list", timeout: timeout)["sessions"]?.array ?? []
    }

    public func session(_ id: String, timeout: Duration = defaultTimeout) async throws(ClientError) -> ClientSession {
        try ClientSession(try await call("session.get", ["session": .string(id)], timeout: timeout))
    }

    /// Carries out all actions, in their order, or none.
    ///
    /// - Parameters:
    ///   - actions: {addInput: …}, {preset: …}, … each.
    ///   - lock: a token under which the session may set devices; nil: ``defaultLock``.
    public func configureSession(
        _ id: String, _ actions: [JSONValue], lock: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> ClientSession {
        try await session("configure", id, ["actions": .array(actions)], lock ?? defaultLock, timeout)
    }

    /// Whether an action, or {switchCamera: a device's id or null}, could be carried out; nil: yes, else why not.
    public func whyNot(
        _ action: JSONValue, inSession id: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> String? {
        let answer = try await call(
            "session.canAdd", ["session": .string(id), "action": action], timeout: timeout)
        return answer["can"] == true ? nil : answer["why"]?.string ?? ""
    }

    /// Starts a session. It answers when it runs, is interrupted, which passes by itself, or waits until its user is
    /// allowed to.
    public func startSession(
        _ id: String, lock: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> ClientSession {
        try await session("start", id, [:], lock ?? defaultLock, timeout)
    }

    public func stopSession(
        _ id: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> ClientSession {
        try await session("stop", id, [:], nil, timeout)
    }

    /// - Returns: false: the end could not be written to the disk, and the next bus may restore the session.
    @discardableResult
    public func deleteSession(_ id: String, timeout: Duration = defaultTimeout) async throws(ClientError) -> Bool {
        try await call("session.delete", ["session": .string(id)], timeout: timeout)["kept"]?.bool ?? true
    }

    /// Has a session go on with another camera, or as it was: then this throws.
    ///
    /// - Parameter device: nil: from one that looks back to one that looks to the front, from any other to one that
    ///   looks back.
    /// - Returns: the session, and the options that the new camera has not.
    public func switchCamera(
        ofSession id: String, to device: String? = nil, lock: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> (session: ClientSession, dropped: [JSONValue]) {
        var params: [String: JSONValue] = ["session": .string(id)]
        if let device { params["device"] = .string(device) }
        if let token = lock ?? defaultLock { params["lock"] = .string(token) }
        let answer = try await call("session.switchCamera", .object(params), timeout: timeout)
        return (try ClientSession(answer), answer["dropped"]?.array ?? [])
    }

    /// Runs a session while the body does, and deletes it however that ends.
    ///
    /// - Parameters:
    ///   - actions: are carried out before it is started, as of ``configureSession(_:_:lock:timeout:)``.
    ///   - lock: a token under which the session may set devices; nil: ``defaultLock``.
    public func withSession<Result>(
        _ wishes: [String: JSONValue] = [:], actions: [JSONValue] = [], lock: String? = nil,
        timeout: Duration = defaultTimeout,
        _ body: (ClientSession) async throws -> Result
    ) async throws -> Result {
        let made = try await createSession(wishes, timeout: timeout)
        let outcome: Swift.Result<Result, any Error>
        do {
            if !actions.isEmpty { _ = try await configureSession(made.id, actions, lock: lock, timeout: timeout) }
            outcome = .success(try await body(try await startSession(made.id, lock: lock, timeout: timeout)))
        } catch {
            outcome = .failure(error)
        }
        // A cancelled task must end its session too: another task does it.
        let release = Task { _ = try? await deleteSession(made.id, timeout: timeout) }
        await release.value
        return try outcome.get()
    }

    private func session(
        _ method: String, _ id: String, _ params: [String: JSONValue], _ lock: String?, _ timeout: Duration
    ) async throws(ClientError) -> ClientSession {
        var params = params
        params["session"] = .string(id)
        if let lock { params["lock"] = .string(lock) }
        return try ClientSession(try await call("session.\(method)", .object(params), timeout: timeout))
    }
}
