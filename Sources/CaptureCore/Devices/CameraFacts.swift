import BusProtocol
public import JSON

/// What can be seen of a camera that is plugged in: enough to know it again, before anybody has given it an id.
public struct CameraFacts: Hashable, Sendable {
    /// What USB says of it.
    public struct USB: Hashable, Sendable {
        /// Four hexadecimal digits each, as USB numbers makers and models.
        public var vendor: String
        public var product: String
        /// nil if the maker gave it none.
        public var serial: String?
        /// The interface that the node belongs to (`bInterfaceNumber`): a camera of several lenses has several.
        public var interface: String

        public init(vendor: String, product: String, serial: String?, interface: String) {
            self.vendor = vendor
            self.product = product
            self.serial = serial
            self.interface = interface
        }
    }

    /// `/dev/video0`: it goes to whoever comes next, and says nothing about who that is.
    public var node: String
    /// The node's number among those of one device.
    public var index: Int
    /// The device's directory in sysfs; empty where there is none.
    public var device: String
    /// nil: not on USB.
    public var usb: USB?
    /// With whom it shares USB's bandwidth; nil: not on USB, or not known. Says nothing about which camera it is.
    public var link: USBLink?
    /// `v4l2_capability.card`, `.driver` and `.bus_info`.
    public var card: String
    public var driver: String
    public var bus: String
    /// Where the firmware says that it looks; `external` for one on USB that can be unplugged.
    public var position: DevicePosition
    /// It is part of the machine.
    public var isBuiltIn: Bool

    public init(
        node: String, index: Int, device: String, usb: USB? = nil, link: USBLink? = nil, card: String, driver: String,
        bus: String, position: DevicePosition = .unspecified, isBuiltIn: Bool = false
    ) {
        self.node = node
        self.index = index
        self.device = device
        self.usb = usb
        self.link = link
        self.card = card
        self.driver = driver
        self.bus = bus
        self.position = position
        self.isBuiltIn = isBuiltIn
    }

    /// The device that it is, under the id that it was given.
    public func identity(uniqueID: String) -> DeviceIdentity {
        DeviceIdentity(
            uniqueID: uniqueID, localizedName: card.isEmpty ? driver : card,
            type: isBuiltIn ? .builtInWideAngleCamera : .external, position: position, node: node, driver: driver,
            bus: bus)
    }

    public var json: JSONValue {
        .members([
            "node": .string(node), "index": JSONValue(index), "device": .string(device),
            "usb": usb?.json, "link": link?.json, "card": .string(card), "driver": .string(driver), "bus": .string(bus),
            "position": .string(position.rawValue), "isBuiltIn": .bool(isBuiltIn),
        ])
    }

    /// Reads what ``json`` writes; nil when it is something else.
    public init?(json: JSONValue) {
        guard let node = json["node"]?.string, let index = json["index"]?.integer.flatMap({ Int(exactly: $0) }),
            let device = json["device"]?.string, let card = json["card"]?.string,
            let driver = json["driver"]?.string, let bus = json["bus"]?.string,
            let position = json["position"]?.string.flatMap(DevicePosition.init)
        else { return nil }
        self.init(
            node: node, index: index, device: device, link: json["link"].flatMap(USBLink.init(json:)), card: card,
            driver: driver, bus: bus, position: position, isBuiltIn: json["isBuiltIn"]?.bool ?? false)
        guard let usb = json["usb"], !usb.isNull else { return }
        guard let known = USB(json: usb) else { return nil }
        self.usb = known
    }
}

extension CameraFacts.USB {
    var json: JSONValue {
        .members([
            "vendor": .string(vendor), "product": .string(product), "serial": serial.map(JSONValue.string),
            "interface": .string(interface),
        ])
    }

    /// Reads what ``json`` writes; nil when it is something else.
    init?(json: JSONValue) {
        guard let vendor = json["vendor"]?.string, let product = json["product"]?.string,
            let interface = json["interface"]?.string
        else { return nil }
        self.init(vendor: vendor, product: product, serial: json["serial"]?.string, interface: interface)
    }
}

/// What a search for cameras and microphones has brought.
public struct CameraSurvey: Hashable, Sendable {
    /// A video node that could not be judged: no permission yet, or a driver that refuses.
    public struct Unreadable: Hashable, Sendable {
        public var node: String
        public var index: Int
        /// The device's directory in sysfs.
        public var device: String
        /// One sentence for people.
        public var why: String

        public init(node: String, index: Int, device: String, why: String) {
            self.node = node
            self.index = index
            self.device = device
            self.why = why
        }
    }

    /// In the order of their nodes' numbers.
    public var cameras: [CameraFacts]
    public var unreadable: [Unreadable]
    /// In the order of their cards' and PCMs' numbers.
    public var microphones: [MicrophoneFacts]
    /// Sound devices that could not be looked at; of the node of a card's controls (`/dev/snd/controlC0`), the card's
    /// number.
    public var unreadableSound: [Unreadable]

    public init(
        cameras: [CameraFacts], unreadable: [Unreadable], microphones: [MicrophoneFacts] = [],
        unreadableSound: [Unreadable] = []
    ) {
        self.cameras = cameras
        self.unreadable = unreadable
        self.microphones = microphones
        self.unreadableSound = unreadableSound
    }

    public var json: JSONValue {
        [
            "cameras": .array(cameras.map(\.json)), "unreadable": .array(unreadable.map(\.json)),
            "microphones": .array(microphones.map(\.json)), "unreadableSound": .array(unreadableSound.map(\.json)),
        ]
    }

    /// nil when it is no survey. One that says nothing of sound found none.
    public init?(json: JSONValue) {
        guard let cameras = json["cameras"]?.array, let unreadable = json["unreadable"]?.array else { return nil }
        self.init(
            cameras: cameras.compactMap(CameraFacts.init(json:)),
            unreadable: unreadable.compactMap(Unreadable.init(json:)),
            microphones: json["microphones"]?.array?.compactMap(MicrophoneFacts.init(json:)) ?? [],
            unreadableSound: json["unreadableSound"]?.array?.compactMap(Unreadable.init(json:)) ?? [])
    }
}

extension CameraSurvey.Unreadable {
    fileprivate var json: JSONValue {
        ["node": .string(node), "index": JSONValue(index), "device": .string(device), "why": .string(why)]
    }

    fileprivate init?(json: JSONValue) {
        guard let node = json["node"]?.string, let index = json["index"]?.integer.flatMap({ Int(exactly: $0) }),
            let device = json["device"]?.string
        else { return nil }
        self.init(node: node, index: index, device: device, why: json["why"]?.string ?? "")
    }
}
