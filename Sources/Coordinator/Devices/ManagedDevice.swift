import CaptureCore

/// A device that this coordinator has a worker for, also while it is not plugged in.
struct ManagedDevice: Hashable {
    /// How the worker finds it.
    enum Source: Hashable {
        case virtual(Int, VirtualProfile)
        /// A camera, as it was seen last.
        case camera(CameraFacts)
        /// A movie, or pictures.
        case replay(ReplayDescription)
        /// A client's own frames.
        case client(ClientSource)
        case virtualMicrophone(Int)
        /// A microphone, as it was seen last.
        case microphone(MicrophoneFacts)

        /// It fails on demand.
        var hasFaults: Bool {
            switch self {
            case .virtual, .replay, .virtualMicrophone: true
            case .camera, .client, .microphone: false
            }
        }

        /// A worker of a camera or microphone can change to another one; any other worker keeps what it was started
        /// with.
        func needsNewWorker(after former: Source) -> Bool {
            switch (former, self) {
            case (.camera, .camera), (.microphone, .microphone): false
            default: former != self
            }
        }
    }

    /// The id in topics, socket names and requests: the alias if there is one.
    let id: String
    let identity: DeviceIdentity
    let source: Source
    let isPlugged: Bool

    /// A device that is made by software of this machine.
    struct Made: Hashable {
        let identity: DeviceIdentity
        let source: Source
        /// The id that it has by its kind, if free.
        let preferredID: String?
    }

    static func virtual(_ number: Int, _ profile: VirtualProfile) -> Made {
        Made(identity: virtualIdentity(number), source: .virtual(number, profile), preferredID: "cam\(number)")
    }

    static func virtualMicrophone(_ number: Int) -> Made {
        Made(
            identity: DeviceIdentity(
                uniqueID: "virtual-microphone-\(number)", localizedName: "Virtual Microphone \(number)",
                mediaType: .audio, type: .virtual, position: .unspecified, driver: "virtual", bus: "virtual:\(number)"),
            source: .virtualMicrophone(number), preferredID: "mic\(number)")
    }

    static func replay(_ replay: ReplayDescription) -> Made {
        let id = Slug.name(replay.name, limit: 32)
        return Made(identity: replay.identity, source: .replay(replay), preferredID: id.isEmpty ? nil : id)
    }

    static func client(_ source: ClientSource) -> Made {
        let id = source.preferredID
        return Made(identity: source.identity, source: .client(source), preferredID: id.isEmpty ? nil : id)
    }

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
    /// How a camera is attached to USB: as configured, or as the kernel reports; nil: it is not, or that is unknown.
    func link(of device: ManagedDevice) -> USBLink? {
        if let link = usbLinks[device.id] ?? usbLinks[device.identity.uniqueID] { return link }
        guard case .camera(let facts) = device.source else { return nil }
        return facts.link
    }
}
