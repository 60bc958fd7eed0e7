import BusServer
import CaptureCore
import JSON

/// The photos that are being taken, for the state of their cameras.
protocol DevicePhotoState: AnyObject {
    /// `photo` of `state/device/<id>/`: {readiness, waiting, owner?}.
    func member(of worker: WorkerHandle) -> JSONValue
}

/// Publishes `state/device/<id>/`, and that devices were connected or disconnected.
final class DevicePublisher {
    weak var photos: (any DevicePhotoState)?
    private let lifecycle: Lifecycle
    private let events: EventSocket
    private let workers: WorkerSupervisor
    private let locks: LockService
    private let pressures: PressureRegistry
    private let rigs: RigRegistry
    /// Which devices were connected when they were published last, by `uniqueID`.
    private var connected: [String: Bool] = [:]

    init(
        _ lifecycle: Lifecycle, _ events: EventSocket, _ workers: WorkerSupervisor, _ locks: LockService,
        _ pressures: PressureRegistry, _ rigs: RigRegistry
    ) {
        self.lifecycle = lifecycle
        self.events = events
        self.workers = workers
        self.locks = locks
        self.pressures = pressures
        self.rigs = rigs
    }

    /// Publishes how a device is now.
    func publish(_ worker: WorkerHandle) {
        events.set("state/device/\(worker.device.id)", value(of: worker))
        let (uniqueID, isConnected) = (worker.device.identity.uniqueID, worker.isConnected)
        let before = connected.updateValue(isConnected, forKey: uniqueID)
        if before != isConnected { rigs.refresh() }
        // A device that is there at the start has not just been connected.
        guard before != isConnected, before != nil || (lifecycle.isReady && isConnected) else { return }
        events.event(
            "event/device/\(worker.device.id)", isConnected ? "connected" : "disconnected",
            ["uniqueID": .string(uniqueID)])
    }

    /// Forgets devices that are gone.
    func forgetGone() { connected = connected.filter { workers.worker(of: $0.key) != nil } }

    /// The value of `state/device/<id>/`: what the worker reports, and what only the coordinator knows.
    func value(of worker: WorkerHandle) -> JSONValue {
        let device = worker.device
        let status = worker.status
        var error = worker.state == .restarting ? Self.crashed : status["error"] ?? .null
        if !device.isPlugged, error["reason"]?.string != "deviceDisconnected" { error = device.disconnected }
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
            members["formatDescription"] = worker.formatDescription
            members["photo"] = photos?.member(of: worker) ?? .null
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

    // A lock for one call is not published.
    private func lockMember(_ device: String) -> JSONValue {
        guard let lock = locks.table.lock(on: device), !lock.isTransient else { return .null }
        return [
            "id": .string(lock.id), "holder": lock.holder.json, "fence": JSONValue(lock.fence),
            "since": JSONValue(lock.since),
        ]
    }
}
