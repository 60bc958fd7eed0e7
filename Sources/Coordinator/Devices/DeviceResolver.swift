import BusProtocol
import BusServer
import CaptureCore
import JSON

/// From the names in a call to devices: by their ids, or by rigs.
final class DeviceResolver {
    private let workers: WorkerSupervisor
    private let rigs: RigRegistry

    init(_ workers: WorkerSupervisor, _ rigs: RigRegistry) {
        self.workers = workers
        self.rigs = rigs
    }

    /// Calls the body with the worker of the call's device, or refuses the call.
    func withWorker(_ call: Call, _ respond: @escaping Responder, _ body: @escaping (WorkerHandle) -> Void) {
        let device = call.string("device") ?? ""
        guard let worker = workers[device] else {
            return respond(.failure(.deviceNotFound(device, known: workers.deviceIDs)))
        }
        body(worker)
    }

    /// The worker of a device that is plugged in.
    ///
    /// - Parameters:
    ///   - path: the param that names the device, for errors.
    ///   - media: nil: any.
    func worker(_ id: String, _ path: String, _ media: MediaType?) throws(BusError) -> WorkerHandle {
        guard let worker = workers[id] else { throw .deviceNotFound(id, known: workers.deviceIDs) }
        guard media == nil || worker.device.identity.mediaType == media else {
            throw .invalidParams(path, "\(id) is not a \(media == .audio ? "microphone" : "camera")")
        }
        guard worker.device.isPlugged else { throw worker.notReady }
        return worker
    }

    /// The devices that `devices` names, by their ids or by rigs; each once.
    ///
    /// - Parameter rig: not offered as a choice when a name is wrong.
    func devices(_ call: Call, exceptRig rig: String? = nil) throws(BusError) -> [String] {
        var devices: [String] = []
        for (index, name) in call.strings("devices").enumerated() {
            for device in try self.devices(named: name, exceptRig: rig) {
                guard !devices.contains(device) else {
                    throw .invalidParams("devices[\(index)]", "\(device) is named twice")
                }
                devices.append(device)
            }
        }
        guard devices.count <= BusLimits.maxDevicesPerLock else {
            throw .limitExceeded(
                .devicesPerLock, "\(BusLimits.maxDevicesPerLock) devices can be taken together, these are more.")
        }
        return devices
    }

    /// The device with that id, or the devices of the rig with that name.
    ///
    /// - Throws: `deviceNotFound`.
    func devices(named name: String, exceptRig rig: String? = nil) throws(BusError) -> [String] {
        if workers[name] != nil { return [name] }
        if let devices = try rigs.devices(of: name) { return devices }
        throw .deviceNotFound(name, known: workers.deviceIDs + rigs.names.filter { $0 != rig })
    }

    /// The devices of a rig; nil: no rig has that name, or a device has the same name, which comes first.
    func devices(ofRig name: String) throws(BusError) -> [String]? {
        workers[name] == nil ? try rigs.devices(of: name) : nil
    }

    /// Refuses microphones where only cameras make sense.
    func checkCameras(_ devices: [String], _ what: String) throws(BusError) {
        for device in devices where workers[device]?.device.identity.mediaType == .audio {
            throw .invalidParams("devices", "\(device) is a microphone; \(what) is for cameras only")
        }
    }

    /// The devices that a session can have.
    var surroundings: CaptureSession.Surroundings {
        CaptureSession.Surroundings(known: workers.deviceIDs) { [workers] id in
            workers[id].map { worker in
                let identity = worker.device.identity
                let words = worker.status["supports"]?["videoStabilizationMode"]?.array ?? []
                return SessionDevice(
                    id: id, mediaType: identity.mediaType, position: identity.position, formats: worker.formats,
                    stabilizationWords: words.compactMap(\.string), sound: worker.microphone)
            }
        }
    }
}

extension WorkerHandle {
    /// How long a request waits for a worker that is just starting, milliseconds.
    static let patience: Int64 = 5000

    /// Why the device can't be used now.
    var notReady: BusError {
        guard device.isPlugged else {
            return BusError(
                .deviceDisconnected, device.disconnected["message"]?.string ?? "", ["device": .string(device.id)])
        }
        if let error = status["error"], let reason = error["reason"]?.string.flatMap(BusError.Reason.init),
            let message = error["message"]?.string
        {
            let data = error["data"]?.object ?? [:]
            return BusError(reason, message, data.merging(["device": .string(device.id)]) { _, own in own })
        }
        return BusError(
            .workerCrashed, "The worker of \(device.id) is not ready; try again in a moment.",
            ["device": .string(device.id)])
    }
}

extension ManagedDevice {
    /// The error of a device that is not plugged in.
    var disconnected: JSONValue {
        [
            "reason": "deviceDisconnected",
            "message": .string("\(id) is not plugged in; it continues by itself when it is back."),
        ]
    }
}

extension JSONValue {
    /// A result that says so where it could not be kept on the disk.
    func marked(isKept: Bool) -> JSONValue {
        guard !isKept, var members = object else { return self }
        members["kept"] = false
        return .object(members)
    }
}
