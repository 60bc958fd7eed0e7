import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `device.list`, `get`, `formats`, `controls`
extension Coordinator {
    func list(_ call: Call, _ respond: @escaping Responder) {
        let (media, type, position) = (call.string("media"), call.string("type"), call.string("position"))
        let devices = fleet.deviceIDs.compactMap { fleet.workers[$0] }.filter { worker in
            let identity = worker.device.identity
            return (media == nil || identity.mediaType.rawValue == media)
                && (type == nil || identity.type.rawValue == type)
                && (position == nil || identity.position.rawValue == position)
        }
        let first = devices.first { $0.isConnected }
        respond(
            .success([
                "devices": .array(devices.map(deviceValue)), "count": JSONValue(devices.count),
                "default": first.map { .string($0.device.id) } ?? .null,
            ]))
    }

    func get(_ call: Call, _ respond: @escaping Responder) {
        withWorker(call, respond) { worker in respond(.success(["device": self.deviceValue(worker)])) }
    }

    func formats(_ call: Call, _ respond: @escaping Responder) {
        withDescription(call, respond) { description in
            respond(.success(["formats": description["formats"] ?? []]))
        }
    }

    func controls(_ call: Call, _ respond: @escaping Responder) {
        withWorker(call, respond) { worker in
            worker.whenReady(withinMilliseconds: Self.patience) {
                guard worker.isRunning else { return respond(.failure(Self.notReady(worker))) }
                // A camera's light is not to go on for who may not see it.
                let media = worker.device.identity.authorizationMedia
                guard self.permission.authorization(of: call.caller, media) == .authorized else {
                    return worker.order(.knownControls, completion: respond)
                }
                worker.readControls(respond)
            }
        }
    }

    /// How long a request waits for a worker that is just starting, milliseconds.
    static let patience: Int64 = 5000

    /// Calls the body with the device's worker, or refuses.
    func withWorker(_ call: Call, _ respond: @escaping Responder, _ body: @escaping (WorkerHandle) -> Void) {
        let device = call.string("device") ?? ""
        guard let worker = fleet.workers[device] else {
            return respond(.failure(.deviceNotFound(device, known: fleet.deviceIDs)))
        }
        body(worker)
    }

    private func withDescription(_ call: Call, _ respond: @escaping Responder, _ body: @escaping (JSONValue) -> Void) {
        withWorker(call, respond) { worker in
            // Who is not there won't be ready by waiting.
            worker.whenReady(withinMilliseconds: worker.device.isPlugged ? Self.patience : 0) {
                guard let description = worker.description else { return respond(.failure(Self.notReady(worker))) }
                body(description)
            }
        }
    }

    static func notReady(_ worker: WorkerHandle) -> BusError {
        guard worker.device.isPlugged else {
            return BusError(
                .deviceDisconnected, disconnected(worker.device)["message"]?.string ?? "",
                ["device": .string(worker.device.id)])
        }
        if let error = worker.status["error"], let reason = error["reason"]?.string.flatMap(BusError.Reason.init),
            let message = error["message"]?.string
        {
            let data = error["data"]?.object ?? [:]
            return BusError(reason, message, data.merging(["device": .string(worker.device.id)]) { _, own in own })
        }
        return BusError(
            .workerCrashed, "The worker of \(worker.device.id) is not ready; ask again in a moment.",
            ["device": .string(worker.device.id)])
    }
}
