public import JSON

/// What can be seen of a microphone that is plugged in: enough to know it again, before anybody has given it an id.
public struct MicrophoneFacts: Hashable, Sendable {
    /// `/dev/snd/pcmC0D0c`: it goes to whoever comes next, and says nothing about who that is.
    public var node: String
    /// ALSA's name for it (`hw:CARD=PCH,DEV=0`).
    public var pcm: String
    /// The card's number now.
    public var card: Int
    /// The card's id (`PCH`), which may be another at the next plugging.
    public var cardID: String
    /// The PCM's number among those of one card.
    public var index: Int
    /// The directory in sysfs of the device that the card is of; empty where there is none.
    public var device: String
    /// nil: not on USB.
    public var usb: CameraFacts.USB?
    /// What the driver calls the card (`HDA Intel PCH`) and the PCM (`ALC256 Analog`).
    public var cardName: String
    public var name: String
    public var driver: String
    /// In V4L2's words, so that a camera and its microphone have the same (`usb-0000:00:14.0-3`); empty where there is
    /// none.
    public var bus: String

    public init(
        node: String, pcm: String, card: Int, cardID: String, index: Int, device: String,
        usb: CameraFacts.USB? = nil, cardName: String, name: String, driver: String, bus: String
    ) {
        self.node = node
        self.pcm = pcm
        self.card = card
        self.cardID = cardID
        self.index = index
        self.device = device
        self.usb = usb
        self.cardName = cardName
        self.name = name
        self.driver = driver
        self.bus = bus
    }

    /// The device that it is, under the id that it was given.
    public func identity(uniqueID: String) -> DeviceIdentity {
        DeviceIdentity(
            uniqueID: uniqueID, localizedName: title, mediaType: .audio,
            type: usb == nil ? .builtInMicrophone : .external, position: usb == nil ? .unspecified : .external,
            node: node, driver: driver, bus: bus)
    }

    /// The name for people. The card's, unless a card of several has to say which it is.
    private var title: String {
        if cardName.isEmpty { return name.isEmpty ? driver : name }
        return index == 0 || name.isEmpty ? cardName : "\(cardName) \(name)"
    }

    public var json: JSONValue {
        .members([
            "node": .string(node), "pcm": .string(pcm), "card": JSONValue(card), "cardID": .string(cardID),
            "index": JSONValue(index), "device": .string(device), "usb": usb?.json, "cardName": .string(cardName),
            "name": .string(name), "driver": .string(driver), "bus": .string(bus),
        ])
    }

    /// Reads what ``json`` writes; nil when it is something else.
    public init?(json: JSONValue) {
        guard let node = json["node"]?.string, let pcm = json["pcm"]?.string,
            let card = json["card"]?.integer.flatMap({ Int(exactly: $0) }), let cardID = json["cardID"]?.string,
            let index = json["index"]?.integer.flatMap({ Int(exactly: $0) }), let device = json["device"]?.string,
            let cardName = json["cardName"]?.string, let name = json["name"]?.string,
            let driver = json["driver"]?.string, let bus = json["bus"]?.string
        else { return nil }
        self.init(
            node: node, pcm: pcm, card: card, cardID: cardID, index: index, device: device, cardName: cardName,
            name: name, driver: driver, bus: bus)
        guard let usb = json["usb"], !usb.isNull else { return }
        guard let known = CameraFacts.USB(json: usb) else { return nil }
        self.usb = known
    }
}
