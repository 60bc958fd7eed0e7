import BusClient
import BusProtocol
import JSON

/// The session that takes the live photos of one `camerabus photo`, and ends with it.
struct LivePhotoSession {
    /// The camera's id.
    let camera: String
    /// The id of the microphone for the movies; nil: no sound.
    let microphone: String?
    /// The orientation of the camera, for both files; nil: the usual one.
    var orientation: String?
    /// Both files are mirrored.
    var isMirrored = false

    /// How long the session may take until it holds the past: it starts a process, and may have to open the camera.
    private static let patience = Duration.seconds(10)

    /// Runs the body while the session runs, once it holds the seconds before the photo or the time for that is over.
    ///
    /// - Parameters:
    ///   - lock: a token under which the session may set the camera; nil: the client's own.
    ///   - body: gets the session's id.
    /// - Throws: ``Failure`` if the session does not run or makes no live photos, and the errors of the body.
    func run(
        _ client: Client, lock: String?, timeout: Duration, _ body: (String) async throws -> Void
    ) async throws {
        try await checkDevices(client, timeout)
        try await client.withSession(wishes, actions: actions, lock: lock, timeout: timeout) { session in
            if let refusal = Self.refusal(session) {
                throw Failure(status: ExitStatus.refused, description: Table.printable(refusal))
            }
            let held = try await client.livePhotoPast(
                ofSession: session.id, within: max(Self.patience, timeout), timeout: timeout)
            if held == .zero, let why = Self.obstacle(try await client.session(session.id, timeout: timeout).state) {
                throw Failure(status: ExitStatus.refused, description: Table.printable(unsupported(why)))
            }
            if held < Client.livePhotoReach { Output.note(PhotoText.short(held)) }
            try await body(session.id)
        }
    }

    // The bus itself would refuse an output that has no camera, or two: its message would not name the mistake.
    private func checkDevices(_ client: Client, _ timeout: Duration) async throws {
        let devices = try await client.devices(timeout: timeout)
        func check(_ id: String, _ mediaType: String, _ what: String) throws {
            guard let found = devices.first(where: { $0["id"]?.string == id })?["mediaType"]?.string,
                found != mediaType
            else { return }
            throw Failure(
                status: ExitStatus.refused, description: Table.printable("invalidParams: \(id) is not a \(what)."))
        }
        try check(camera, "video", "camera")
        if let microphone { try check(microphone, "audio", "microphone") }
    }

    // When the session began, the camera's format may have changed to one without live photos.
    private static func obstacle(_ session: JSONValue) -> String? {
        let output = session["outputs"]?.array?.first { $0["type"] == "photo" }
        guard output?["livePhotoCaptureEnabled"] == false else { return nil }
        return output?["livePhotoCaptureSupported"]?["why"]?.string ?? "the session makes no live photos"
    }

    private func unsupported(_ why: String) -> String {
        "photoFormatUnavailable: --live is not possible: \(why); 'camerabus format \(camera) --pixel YUYV' chooses "
            + "another format, and 'camerabus formats \(camera)' lists all."
    }

    /// The settings before the session starts: its connection sets the orientation of both files.
    var actions: [JSONValue] {
        guard orientation != nil || isMirrored else { return [] }
        var connection: [String: JSONValue] = ["output": "photo"]
        connection["videoOrientation"] = orientation.map(JSONValue.string)
        if isMirrored { connection["videoMirrored"] = true }
        return [["connection": .object(connection)]]
    }

    /// The session keeps the camera's settings.
    var wishes: [String: JSONValue] {
        let devices = [camera] + [microphone].compactMap(\.self)
        return [
            "name": "live photos", "preset": "inputPriority",
            "inputs": .array(devices.map { ["device": .string($0)] }),
            "outputs": [["type": "photo", "livePhotoCaptureEnabled": true]],
        ]
    }

    /// Why the session can't take a photo now; nil: it runs.
    static func refusal(_ session: ClientSession) -> String? {
        switch session.runState {
        case "running", "starting": return nil
        case "waitingForAuthorization":
            let why = session.explanation.joined(separator: " ")
            return "unauthorized: \(why.isEmpty ? "You have no permission for the camera or the microphone." : why)"
        default:
            let error = session.state["error"]
            let reason = session.state["interruption"]?["reason"] ?? error?["data"]?["reason"] ?? error?["reason"]
            let message = session.state["interruption"]?["message"] ?? error?["message"]
            return "\(reason?.string ?? "sessionNotRunning"): \(message?.string ?? "The session does not run.")"
        }
    }
}
