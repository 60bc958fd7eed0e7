import BusProtocol
import CaptureCore
import CaptureSources
import Glibc
import JSON
import LinuxIO

extension BusError {
    /// What a client is told of a failure at the device. The one place where a driver's words become the contract's.
    ///
    /// - Parameters:
    ///   - device: the device's id.
    ///   - description: where it is known, for the range of a control that was refused.
    init(_ error: SourceError, device: String, description: DeviceDescription? = nil) {
        let detail = "\(error)"
        switch error.kind {
        case .disconnected:
            self.init(
                .deviceDisconnected, "\(device) is disconnected; \(error.lack ?? "plug it in again"). (\(detail))",
                ["device": .string(device)])
        case .inUse:
            // Whose processes can't be looked into are not named.
            let names = error.holders.isEmpty ? "another program" : error.holders.named
            self.init(
                .deviceInUse, "\(device) is in use by \(names); end that program first. (\(detail))",
                [
                    "device": .string(device), "control": error.control.map(JSONValue.string),
                    "by": error.holders.isEmpty ? .null : .array(error.holders.map(\.json)),
                ].compactMapValues { $0 })
        case .refused:
            if let name = error.control {
                self.init(controlOutOfRange: description?.controls.first { $0.name == name }, name, device, detail)
            } else {
                self.init(
                    .formatUnsupported, "\(device) refuses that format; choose one of its formats. (\(detail))",
                    ["device": .string(device), "nearest": .null])
            }
        case .controlBusy:
            self.init(
                .controlBusy,
                "\(error.control ?? "A control") of \(device) can't be set now; an automatic mode may have it. "
                    + "(\(detail))",
                ["device": .string(device), "control": error.control.map(JSONValue.string) ?? .null])
        case .noResources:
            // ENOSPC is the USB controller's bandwidth, ENOMEM the kernel's memory: both are a limit that others share.
            self.init(
                .limitExceeded,
                "\(device) has no bandwidth on its bus or no memory; choose a smaller format or stop another camera. "
                    + "(\(detail))",
                ["device": .string(device), "limit": "deviceResources"])
        case .notPermitted:
            // EPERM is not the file's mode: a unit's DeviceAllow=, which goes by the drivers that were loaded when it
            // started, or a container.
            let remedy =
                error.errno == EPERM
                ? "access to all such devices is blocked: restart the service if their driver was loaded after it"
                : "add the service's user to the node's group"
            self.init(
                .unauthorized, "The service may not open \(device); \(remedy). (\(detail))",
                ["device": .string(device), "status": "restricted", "needed": "access to the device node"])
        case .silent:
            self.init(
                .interrupted,
                "\(device) delivers no pictures at the moment; check the device if that does not change. "
                    + "(\(detail))",
                ["device": .string(device), "interruption": "noFrames"])
        case .changed, .failed:
            self.init(.internalError, "\(device) failed: \(detail)", ["device": .string(device)])
        }
    }

    private init(controlOutOfRange control: CaptureControl?, _ name: String, _ device: String, _ detail: String) {
        var data: [String: JSONValue] = ["device": .string(device), "control": .string(name)]
        if let control {
            data["min"] = .integer(control.minimum)
            data["max"] = .integer(control.maximum)
            data["step"] = .integer(control.step)
        }
        self.init(.controlOutOfRange, "\(device) refuses that value of \(name). (\(detail))", data)
    }
}

extension [DeviceHolder] {
    /// For people: `ffmpeg (pid 812), cheese (pid 913)`.
    var named: String { map { "\($0.name) (pid \($0.pid))" }.joined(separator: ", ") }
}

extension DeviceHolder {
    /// {pid, uid, name}
    fileprivate var json: JSONValue { ["pid": JSONValue(pid), "uid": JSONValue(uid), "name": .string(name)] }
}
