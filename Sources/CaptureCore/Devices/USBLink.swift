public import JSON

/// How a camera hangs on USB: with whom it shares what bandwidth.
public struct USBLink: Hashable, Sendable {
    /// The host controller's directory in sysfs: `/sys/devices/pci0000:00/0000:00:14.0`.
    public var controller: String
    /// The root hub's directory in sysfs, `…/usb1`: all devices below it share one bandwidth. A controller of USB 3 has
    /// two, one for each kind of plug.
    public var bus: String
    /// Megabits a second that the device runs at (sysfs `speed`): 12, 480, 5000, 10000, 20000.
    public var speed: Int
    /// Those of the root hub.
    public var busSpeed: Int

    public init(controller: String, bus: String, speed: Int, busSpeed: Int) {
        self.controller = controller
        self.bus = bus
        self.speed = speed
        self.busSpeed = busSpeed
    }

    /// For people: `USB bus 1`, or the directory's name where it has no number.
    public var busName: String {
        let name = bus.split(separator: "/").last.map(String.init) ?? bus
        guard name.hasPrefix("usb"), let number = Int(name.dropFirst(3)) else { return name }
        return "USB bus \(number)"
    }

    /// {controller, bus, speed, busSpeed}
    public var json: JSONValue {
        .object([
            "controller": .string(controller), "bus": .string(bus), "speed": JSONValue(speed),
            "busSpeed": JSONValue(busSpeed),
        ])
    }

    /// nil when it is something else, or has no speed.
    public init?(json: JSONValue) {
        guard let controller = json["controller"]?.string, let bus = json["bus"]?.string,
            let speed = json["speed"]?.integer.flatMap({ Int(exactly: $0) }), speed > 0,
            let busSpeed = json["busSpeed"]?.integer.flatMap({ Int(exactly: $0) }), busSpeed > 0
        else { return nil }
        self.init(controller: controller, bus: bus, speed: speed, busSpeed: busSpeed)
    }
}

extension USBLink {
    /// Bits a second that cameras have of a bus of that speed, payload only.
    ///
    /// - USB 1 (12 Mb/s): one isochronous endpoint of 1023 bytes a frame of 1 ms (USB 2.0, 5.6.3).
    /// - USB 2 (480 Mb/s): 80 % of each microframe of 125 µs is for periodic transfers (USB 2.0, 5.6.4), which holds
    ///   about 5100 bytes with what packets and bit stuffing cost (Linux' `HS_NSECS_ISO`).
    /// - USB 3 (5 Gb/s): 8b/10b leaves 4 Gb/s, of which at most 90 % are periodic (USB 3.2, 8.12.6), and packets cost
    ///   about a tenth of it.
    /// - USB 3.1 and above: as much of the rate, without the loss of 8b/10b.
    static func room(ofSpeed megabits: Int) -> Double {
        switch megabits {
        case ..<480: 8_184_000
        case ..<5000: 5100 * 8 * 8000
        case ..<10000: 3_200_000_000
        default: Double(megabits) * 1_000_000 * 0.78
        }
    }

    /// Bits a second that one isochronous endpoint can have at most: three packets of 1024 bytes a microframe at USB 2
    /// (USB 2.0, 5.6.3), three bursts of sixteen at USB 3 (USB 3.2, 8.12.6.1).
    static func endpointRoom(ofSpeed megabits: Int) -> Double {
        switch megabits {
        case ..<480: room(ofSpeed: megabits)
        case ..<5000: 3 * 1024 * 8 * 8000
        default: 3 * 16 * 1024 * 8 * 8000
        }
    }
}
