import BusClient
import BusProtocol
import JSON

/// The session that takes the live photos of one `camerabus photo`, and ends with it.
struct LivePhotoSession {
    /// The camera's id.
    let camera: String
    /// The id of one whose sound is in the movies; nil: they have none.
    let microphone: String?
    /// How the camera is held, for both files; nil: as it usually is.
    var orientation: String?
    /// Both files are as in a mirror.
    var isMirrored = false

    /// How long it may take until the past is there: a process is started for it, and the camera may have to be opened.
    private static let patience = Duration.seconds(10)

    /// Runs the body while the session runs and, if there was time for that, holds what a live photo shows of the past.
    ///
    /// - Parameters:
    ///   - lock: a token under which the session may set the camera; nil: the client's own.
    ///   - body: gets the session's id.
    /// - Throws: ``Failure`` where the session doesn't come to run, or makes no live photos, and what the body throws.
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

    // What the bus refuses it would refuse as an output that has no camera, or two.
    private func checkDevices(_ client: Client, _ timeout: Duration) async throws {
        let devices = try await client.devices(timeout: timeout)
        func check(_ id: String, _ mediaType: String, _ what: String) throws {
            guard let found = devices.first(where: { $0["id"]?.string == id })?["mediaType"]?.string,
                found != mediaType
            else { return }
            throw Failure(
                status: ExitStatus.refused, description: Table.printable("invalidParams: \(id) is no \(what)."))
        }
        try check(camera, "video", "camera")
        if let microphone { try check(microphone, "audio", "microphone") }
    }

    // Its format may have become one that no live photos are made of, as the session began.
    private static func obstacle(_ session: JSONValue) -> String? {
        let output = session["outputs"]?.array?.first { $0["type"] == "photo" }
        guard output?["livePhotoCaptureEnabled"] == false else { return nil }
        return output?["livePhotoCaptureSupported"]?["why"]?.string ?? "the session makes none"
    }

    private func unsupported(_ why: String) -> String {
        "photoFormatUnavailable: --live can't be had: \(why); 'camerabus format \(camera) --pixel YUYV' chooses another "
            + "format, and 'camerabus formats \(camera)' lists those that it has."
    }

    /// What is set before the session is started: both files lie as its connection has them.
    var actions: [JSONValue] {
        guard orientation != nil || isMirrored else { return [] }
        var connection: [String: JSONValue] = ["output": "photo"]
        connection["videoOrientation"] = orientation.map(JSONValue.string)
        if isMirrored { connection["videoMirrored"] = true }
        return [["connection": .object(connection)]]
    }

    /// The camera stays as it is set.
    var wishes: [String: JSONValue] {
        let devices = [camera] + [microphone].compactMap(\.self)
        return [
            "name": "live photos", "preset": "inputPriority",
            "inputs": .array(devices.map { ["device": .string($0)] }),
            "outputs": [["type": "photo", "livePhotoCaptureEnabled": true]],
        ]
    }

    /// Why no photo is to be taken of it: it waits for something, which may take any time; nil: it runs.
    static func refusal(_ session: ClientSession) -> String? {
        switch session.runState {
        case "running", "starting": return nil
        case "waitingForAuthorization":
            let why = session.explanation.joined(separator: " ")
            return "unauthorized: \(why.isEmpty ? "You may not have the camera, or the microphone." : why)"
        default:
            let error = session.state["error"]
            let reason = session.state["interruption"]?["reason"] ?? error?["data"]?["reason"] ?? error?["reason"]
            let message = session.state["interruption"]?["message"] ?? error?["message"]
            return "\(reason?.string ?? "sessionNotRunning"): \(message?.string ?? "The session does not run.")"
        }
    }
}
