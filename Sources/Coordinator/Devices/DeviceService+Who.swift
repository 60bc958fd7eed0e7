import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `device.who`
extension DeviceService {
    func who(_ call: Call, _ respond: @escaping Responder) {
        resolver.withWorker(call, respond) { worker in
            worker.readUsers { [weak self] result in
                guard let self else { return }
                switch result {
                case .success(let users): respond(.success(usage(of: worker, users)))
                // Without its worker nobody gets frames. Other programs that have the node open can't be looked for.
                case .failure(let error) where error.reason == .workerCrashed:
                    respond(.success(usage(of: worker, ["subscribers": [], "foreign": [], "complete": false])))
                case .failure(let error): respond(.failure(error))
                }
            }
        }
    }

    private func usage(of worker: WorkerHandle, _ users: JSONValue) -> JSONValue {
        let device = worker.device.id
        var lock = JSONValue.null
        // A lock for one call is not published.
        if let held = locks.table.lock(on: device), !held.isTransient {
            lock = [
                "id": .string(held.id), "holder": held.holder.json, "fence": JSONValue(held.fence),
                "since": JSONValue(held.since), "note": held.note.map(JSONValue.string) ?? .null,
            ]
        }
        let waiters = locks.table.waiters(on: device).map { request -> JSONValue in
            [
                "holder": request.holder.json, "devices": JSONValue(request.devices),
                "note": request.note.map(JSONValue.string) ?? .null,
            ]
        }
        return [
            "device": .string(device), "node": worker.device.identity.node.map(JSONValue.string) ?? .null,
            "lock": lock, "waiters": .array(waiters),
            "subscribers": .array((users["subscribers"]?.array ?? []).map(named)),
            "foreign": users["foreign"] ?? [], "complete": users["complete"] ?? false,
        ]
    }

    /// A subscriber with the name that it gave itself, if it has said hello.
    private func named(_ subscriber: JSONValue) -> JSONValue {
        guard var members = subscriber.object, let pid = members["pid"]?.integer.flatMap({ Int32(exactly: $0) }) else {
            return subscriber
        }
        if let recorder = recorders.recorder(of: pid) {
            members["name"] = "camerabus-recorder"
            // A recorder of live photos makes no movie that is published.
            if !recorders.isListenedTo(recorder.movie) { members["movie"] = .string(recorder.movie) }
        } else if let name = clients.name(of: pid) {
            members["name"] = .string(name)
        }
        return .object(members)
    }
}
