import BusProtocol
import CaptureCore
import JSON

/// Which users may change which devices.
final class DeviceAccess {
    private let workers: WorkerSupervisor
    private let permission: AuthorizationService

    init(_ workers: WorkerSupervisor, _ permission: AuthorizationService) {
        self.workers = workers
        self.permission = permission
    }

    /// Refuses a method that changes something to a caller without permission for the media of the devices in the
    /// params. Params without a device, or with a rig, a session or a profile, concern cameras.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    func check(_ method: Method, _ caller: Caller, _ params: JSONValue) throws(BusError) {
        guard method.needs == .permission else { return }
        var devices = params["device"]?.string.map { [$0] } ?? []
        devices += params["devices"]?.string.map { [$0] } ?? params["devices"]?.array?.compactMap(\.string) ?? []
        devices += params["changes"]?.array?.compactMap { $0["device"]?.string } ?? []
        let media = devices.map { workers[$0]?.device.identity.authorizationMedia ?? .video }
        try permission.authorize(caller, media.isEmpty ? [.video] : Set(media))
    }

    /// Whether the holder may not change one of these devices (any more).
    func isUnauthorized(_ holder: LockHolder, _ devices: [String]) -> Bool {
        devices.contains { device in
            guard let identity = workers[device]?.device.identity else { return false }
            return !permission.mayChange(uid: holder.uid, gid: holder.gid, identity.authorizationMedia)
        }
    }
}

extension DeviceIdentity {
    /// The permission that is needed to see or hear the device.
    var authorizationMedia: AuthorizationMedia { mediaType == .audio ? .audio : .video }
}
