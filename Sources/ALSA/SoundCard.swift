import CALSA
import Glibc

/// What a sound card says of itself through its controls (`snd_ctl_t`), whoever plays and records on it.
public struct SoundCard: Hashable, Sendable {
    /// One of its PCMs that can be recorded from.
    public struct CaptureDevice: Hashable, Sendable {
        /// Its number among the PCMs of the card.
        public var device: Int
        /// What the driver calls it: `ALC256 Analog`.
        public var name: String
        /// How many can be open at the same time.
        public var subdevices: Int

        public init(device: Int, name: String, subdevices: Int) {
            self.device = device
            self.name = name
            self.subdevices = subdevices
        }
    }

    public var number: Int
    /// `PCH`: of letters, digits, `-` and `_`, unique at a time.
    public var id: String
    public var driver: String
    /// `HDA Intel PCH`
    public var name: String
    /// In the order of their numbers.
    public var captureDevices: [CaptureDevice]

    public init(number: Int, id: String, driver: String, name: String, captureDevices: [CaptureDevice]) {
        self.number = number
        self.id = id
        self.driver = driver
        self.name = name
        self.captureDevices = captureDevices
    }

    /// Looks at the card of that number.
    ///
    /// - Throws: `ENODEV` or `ENOENT` when there is none, `EACCES` for who may not look.
    public init(number: Int) throws(ALSAError) {
        _ = ALSALibrary.isSilent
        let device = "hw:\(number)"
        var control: OpaquePointer?
        try check("snd_ctl_open", device, snd_ctl_open(&control, device, SND_CTL_NONBLOCK))
        guard let control else { throw ALSAError(operation: "snd_ctl_open", device: device, code: ENODEV) }
        defer { snd_ctl_close(control) }
        var info: OpaquePointer?
        try check("snd_ctl_card_info_malloc", device, snd_ctl_card_info_malloc(&info))
        guard let info else { throw ALSAError(operation: "snd_ctl_card_info_malloc", device: device, code: ENOMEM) }
        defer { snd_ctl_card_info_free(info) }
        try check("snd_ctl_card_info", device, snd_ctl_card_info(control, info))
        self.number = number
        id = String(cString: snd_ctl_card_info_get_id(info))
        driver = String(cString: snd_ctl_card_info_get_driver(info))
        name = String(cString: snd_ctl_card_info_get_name(info))
        captureDevices = try Self.captureDevices(control, device)
    }

    private static func captureDevices(
        _ control: OpaquePointer, _ card: String
    ) throws(ALSAError) -> [CaptureDevice] {
        var info: OpaquePointer?
        try check("snd_pcm_info_malloc", card, snd_pcm_info_malloc(&info))
        guard let info else { throw ALSAError(operation: "snd_pcm_info_malloc", device: card, code: ENOMEM) }
        defer { snd_pcm_info_free(info) }
        var devices: [CaptureDevice] = []
        var device: Int32 = -1
        while true {
            try check("snd_ctl_pcm_next_device", card, snd_ctl_pcm_next_device(control, &device))
            if device < 0 { return devices }
            snd_pcm_info_set_device(info, UInt32(device))
            snd_pcm_info_set_subdevice(info, 0)
            snd_pcm_info_set_stream(info, SND_PCM_STREAM_CAPTURE)
            let result = snd_ctl_pcm_info(control, info)
            // It only plays.
            if result == -ENOENT { continue }
            try check("snd_ctl_pcm_info", card, result)
            devices.append(
                CaptureDevice(
                    device: Int(device), name: String(cString: snd_pcm_info_get_name(info)),
                    subdevices: Int(snd_pcm_info_get_subdevices_count(info))))
        }
    }
}

/// Tells when a card's controls change, whoever changes them (`snd_ctl_subscribe_events`). Used by one thread at a
/// time.
public final class CardEvents {
    /// Readable when there is an event; open as long as this object lives.
    public let descriptor: Int32

    private let control: OpaquePointer
    private let event: OpaquePointer
    private let device: String

    /// Listens to the card of that number from now on.
    public init(card number: Int) throws(ALSAError) {
        _ = ALSALibrary.isSilent
        let device = "hw:\(number)"
        var event: OpaquePointer?
        try check("snd_ctl_event_malloc", device, snd_ctl_event_malloc(&event))
        guard let event else { throw ALSAError(operation: "snd_ctl_event_malloc", device: device, code: ENOMEM) }
        var control: OpaquePointer?
        let result = snd_ctl_open(&control, device, SND_CTL_NONBLOCK)
        guard result >= 0, let control else {
            snd_ctl_event_free(event)
            throw ALSAError(operation: "snd_ctl_open", device: device, code: -result)
        }
        var waits = pollfd(fd: -1, events: 0, revents: 0)
        let count = snd_ctl_poll_descriptors(control, &waits, 1)
        self.device = device
        self.event = event
        self.control = control
        descriptor = waits.fd
        // From here on deinit closes it, also when this throws.
        guard count == 1 else { throw ALSAError(operation: "snd_ctl_poll_descriptors", device: device, code: ENODEV) }
        try check("snd_ctl_subscribe_events", device, snd_ctl_subscribe_events(control, 1))
    }

    deinit {
        snd_ctl_close(control)
        snd_ctl_event_free(event)
    }

    /// The name of the next control that has changed, come or gone (`Capture Volume`); nil when there is none. Never
    /// waits.
    public func next() throws(ALSAError) -> String? {
        while true {
            let result = snd_ctl_read(control, event)
            if result == 0 || result == -EAGAIN { return nil }
            try check("snd_ctl_read", device, result)
            guard snd_ctl_event_get_type(event) == SND_CTL_EVENT_ELEM else { continue }
            return String(cString: snd_ctl_event_elem_get_name(event))
        }
    }
}
