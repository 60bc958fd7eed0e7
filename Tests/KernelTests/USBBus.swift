import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import JSON
import Testing

/// A bus on which emulated USB cameras are plugged in, and somebody who asks it.
///
/// Emulated processors take their time: all that is waited for here has more than three minutes there.
final class USBBus {
    let bus: BusHarness
    let client: RawClient

    static var patience: Deadline { .after(seconds: 40) }

    init() async throws {
        bus = try await BusHarness(
            virtual: nil, configuration: "[devices]\nvirtual = 0\n", deadline: Self.patience)
        client = try RawClient(path: bus.directory.commandSocket)
    }

    /// All devices that are known, or were.
    func devices() throws -> [JSONValue] { try client.call("device.list", within: 60)["devices"]?.array ?? [] }

    func device(_ id: String) throws -> JSONValue {
        try client.call("device.get", ["device": .string(id)], within: 60)["device"] ?? .null
    }

    /// The id of the camera on a port, as soon as it has been opened there.
    func id(of camera: EmulatedCamera) async throws -> String {
        var id: String?
        try await eventually(by: Self.patience) {
            id = try devices().first { $0["bus"] == camera.bus && Self.isReady($0) }?["id"]?.string
            return id != nil
        }
        return try #require(id)
    }

    /// Waits until a device is there, and has been opened, or is away.
    func wait(_ id: String, isConnected: Bool) async throws {
        try await eventually(by: Self.patience) {
            let device = try device(id)
            return isConnected ? Self.isReady(device) : device["connected"] == .bool(false)
        }
    }

    func wait(_ id: String, until condition: (JSONValue) throws -> Bool) async throws {
        try await eventually(by: Self.patience) { try condition(device(id)) }
    }

    /// Changes devices under a lock of its own.
    func configure(_ changes: [JSONValue], mode: String = "exact") throws {
        let devices = changes.compactMap { $0["device"] }
        let lock = try client.call("device.lock", ["devices": .array(devices)])["lock"] ?? .null
        defer { _ = try? client.call("device.unlock", ["lock": lock]) }
        try client.call(
            "device.configure", ["lock": lock, "changes": .array(changes), "mode": .string(mode)], within: 60)
    }

    private static func isReady(_ device: JSONValue) -> Bool {
        device["connected"] == true && device["worker"]?["state"] == "running"
            && !(device["activeFormat"]?.isNull ?? true)
    }

    static let format: JSONValue = ["pixelFormat": "MJPG", "width": 640, "height": 360]
}

extension EmulatedCamera {
    /// What its driver says of where it is: `usb-vhci_hcd.0-1` for the first port.
    var bus: JSONValue { .string("usb-vhci_hcd.0-\(port + 1)") }
}
