import BusProtocol
import BusServer
import CaptureCore
import JSON

/// `rig.set`, `delete`, `list`, and what other methods take a rig for.
extension Coordinator {
    static let rigServices: [String: Service] = [
        "rig.set": { $0.setRig }, "rig.delete": { $0.deleteRig }, "rig.list": { $0.listRigs },
    ]

    func setRig(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let name = call.string("name") ?? ""
            if DeviceID.isValid(name), let owner = roster.owner(of: name, wishes) {
                throw .invalidParams("name", "'\(name)' is the name of a device (\(owner))")
            }
            // Kept by what they are for ever: a device may be given another id.
            let devices = try devices(call, exceptRig: name)
            try checkCameras(devices, "a rig")
            let members = devices.compactMap { fleet.workers[$0]?.device.identity.uniqueID }
            let rig = Rig(devices: members, tolerance: call.duration("tolerance"))
            try rigs.set(rig, as: name) { [weak self] isKept in
                respond(.success(Self.told(isKept, ["rig": self?.rigs.value(of: name) ?? .null])))
            }
        } catch {
            respond(.failure(error))
        }
    }

    func deleteRig(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            try rigs.delete(call.string("name") ?? "") { isKept in respond(.success(Self.told(isKept, [:]))) }
        } catch {
            respond(.failure(error))
        }
    }

    func listRigs(_ call: Call, _ respond: @escaping Responder) {
        respond(.success(["rigs": .array(rigs.names.compactMap(rigs.value(of:)))]))
    }

    /// The devices that `devices` names, by themselves or by rigs; each once.
    ///
    /// - Parameter rig: one that is no choice where a name is wrong.
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

    /// Refuses microphones where only cameras make sense.
    func checkCameras(_ devices: [String], _ what: String) throws(BusError) {
        for device in devices where fleet.workers[device]?.device.identity.mediaType == .audio {
            throw .invalidParams("devices", "\(device) is a microphone; \(what) is of cameras")
        }
    }

    /// The device of that id, or the devices of the rig of that name.
    ///
    /// - Throws: `deviceNotFound`.
    func devices(named name: String, exceptRig rig: String? = nil) throws(BusError) -> [String] {
        if fleet.workers[name] != nil { return [name] }
        if let devices = try rigs.devices(of: name) { return devices }
        throw .deviceNotFound(name, known: fleet.deviceIDs + rigs.names.filter { $0 != rig })
    }
}
