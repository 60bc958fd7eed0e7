import BusClient
import BusProtocol
import JSON

/// The session that takes the live photos of one `camerabus photo`, and ends with it.
struct LivePhotoSession {
    /// The camera's id.
    let camera: String
    /// The id of one whose sound is in the movies; nil: they have none.
    let microphone: String?

    /// How long it may take until the past is there: a process is started for it, and the camera may have to be opened.
    private static let patience = Duration.seconds(10)

    /// Runs the body while the session runs and, if there was time for that, holds what a live photo shows of the past.
    ///
    /// - Parameters:
    ///   - lock: a token under which the session may set the camera; nil: the client's own.
    ///   - body: gets the session's id.
    /// - Throws: ``Failure`` where the session doesn't come to run, and what the body throws.
    func run(
        _ client: Client, lock: String?, timeout: Duration, _ body: (String) async throws -> Void
    ) async throws {
        try await client.withSession(wishes, lock: lock, timeout: timeout) { session in
            if let refusal = Self.refusal(session) {
                throw Failure(status: ExitStatus.refused, description: Table.printable(refusal))
            }
            let held = try await client.livePhotoPast(
                ofSession: session.id, within: max(Self.patience, timeout), timeout: timeout)
            if held < Client.livePhotoReach { Output.note(PhotoWords.short(held)) }
            try await body(session.id)
        }
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
