import BusServer
import CaptureCore
import JSON

extension Coordinator {
    /// The value of `state/device/<id>/`: what the worker says, and what only the coordinator knows.
    func deviceValue(_ worker: WorkerHandle) -> JSONValue {
        let device = worker.device
        let status = worker.status
        var error = worker.state == .restarting ? Self.crashed : status["error"] ?? .null
        if !device.isPlugged, error["reason"]?.string != "deviceDisconnected" { error = Self.disconnected(device) }
        var members: [String: JSONValue] = [
            "id": .string(device.id), "uniqueID": .string(device.identity.uniqueID),
            "name": .string(device.identity.localizedName), "mediaType": .string(device.identity.mediaType.rawValue),
            "type": .string(device.identity.type.rawValue), "position": .string(device.identity.position.rawValue),
            "node": device.isPlugged ? device.identity.node.map(JSONValue.string) ?? .null : .null,
            "driver": .string(device.identity.driver),
            "bus": .string(device.identity.bus),
            "connected": .bool(worker.isConnected),
            "isOpen": status["isOpen"] ?? false, "isStreaming": status["isStreaming"] ?? false,
            "stream": status["stream"] ?? .null, "memory": status["memory"] ?? .null,
            "activeFormat": status["activeFormat"] ?? .null,
            "frameDuration": status["frameDuration"] ?? .null, "frameRate": status["frameRate"] ?? .null,
            "generation": status["generation"] ?? 0, "controls": status["controls"] ?? [:],
            "supports": status["supports"] ?? [:],
            "asOf": status["asOf"] ?? .null, "lock": lockMember(device.id),
            "kernelPriority": status["kernelPriority"] ?? .null, "notRestored": status["notRestored"] ?? [],
            "worker": workerMember(worker), "error": error, "systemPressureState": pressures.state(worker).json,
        ]
        if device.identity.mediaType == .audio {
            members["dataSources"] = status["dataSources"] ?? []
        } else {
            members["photo"] = photoMember(worker)
        }
        return .object(members)
    }

    private func workerMember(_ worker: WorkerHandle) -> JSONValue {
        [
            "pid": worker.pid.map { JSONValue($0) } ?? .null, "state": .string(worker.state.rawValue),
            "restarts": JSONValue(worker.restarts), "busySince": worker.status["busySince"] ?? .null,
        ]
    }

    private static let crashed: JSONValue = [
        "reason": "workerCrashed", "message": "The device's worker process ended and is started again.",
    ]

    static func disconnected(_ device: ManagedDevice) -> JSONValue {
        [
            "reason": "deviceDisconnected",
            "message": .string("\(device.id) is not plugged in; it goes on by itself when it is back."),
        ]
    }

    // A lock that lasts for one call is nobody else's business.
    private func lockMember(_ device: String) -> JSONValue {
        guard let lock = locks.table.lock(on: device), !lock.isTransient else { return .null }
        return [
            "id": .string(lock.id), "holder": lock.holder.json, "fence": JSONValue(lock.fence),
            "since": JSONValue(lock.since),
        ]
    }
}
