import CaptureCore

/// A device that this coordinator has a worker for, also while it is not plugged in.
struct ManagedDevice: Hashable {
    /// How the worker finds it.
    enum Source: Hashable {
        case virtual(Int, VirtualProfile)
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
