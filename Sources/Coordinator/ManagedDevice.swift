import CaptureCore

/// A device that this coordinator has a worker for, also while it is not plugged in.
struct ManagedDevice: Hashable {
    /// How the worker finds it.
    enum Source: Hashable {
        case virtual(Int)
        /// A camera, as it was seen last.
        case camera(CameraFacts)
    }

    /// The id in topics, socket names and requests: the alias if there is one.
    let id: String
    let identity: DeviceIdentity
    let source: Source
    let isPlugged: Bool

    /// The device of that number among the virtual cameras.
    static func virtualIdentity(_ number: Int) -> DeviceIdentity {
        let position: DevicePosition =
            switch number {
            case 0: .back
            case 1: .front
            default: .external
            }
        return DeviceIdentity(
            uniqueID: "virtual-\(number)", localizedName: "Virtual Camera \(number)", type: .virtual,
            position: position, driver: "virtual", bus: "virtual:\(number)")
    }
}

extension Configuration {
    /// How a camera hangs on USB: as is said here, else as the kernel does; nil: it does not, or nobody knows.
    func link(of device: ManagedDevice) -> USBLink? {
        if let link = usbLinks[device.id] ?? usbLinks[device.identity.uniqueID] { return link }
        guard case .camera(let facts) = device.source else { return nil }
        return facts.link
    }
}
