/// What a camera's `uniqueID` is made of.
package struct V4L2DeviceFacts: Hashable, Sendable {
    package var node: V4L2SysfsNode
    /// `v4l2_capability.card`.
    package var card: String
    /// `v4l2_capability.bus_info`.
    package var busInfo: String

    package init(_ node: V4L2SysfsNode, card: String, busInfo: String) {
        self.node = node
        self.card = card
        self.busInfo = busInfo
    }
}

/// Makes ids that the same camera on the same port has again after a replug or a reboot, and that two cameras never share.
///
/// A USB camera with a serial number of its own is known by it, wherever it is plugged in. Many have none, or the same in every
/// one made: those are known by where they are (`bus_info`), the model, and the node's number within the device. Never by
/// `/dev/videoN`, which goes to whoever comes first.
package enum V4L2DeviceID {
    /// The longest id.
    package static let limit = 120

    /// An id for each of the cameras that are there, in their order.
    package static func ids(_ cameras: [V4L2DeviceFacts]) -> [String] {
        let shared = sharedSerials(cameras)
        var ids = cameras.map { camera in
            if let key = SerialKey(camera), !shared.contains(key) {
                return sanitized([
                    "usb", "\(key.vendor):\(key.product)", key.serial, interface(camera), "index\(camera.node.index)",
                ])
            }
            // Drivers have to fill in bus_info; those that don't are at least somewhere in the device tree.
            let place =
                camera.busInfo.isEmpty
                ? camera.node.device.split(separator: "/").suffix(2).joined(separator: "-") : camera.busInfo
            return sanitized([place, interface(camera), camera.card, "index\(camera.node.index)"])
        }
        // Two that are still the same differ in their place in the device tree, or, in one device, in nothing but their order.
        var seen: [String: Int] = [:]
        let counts = Dictionary(ids.map { ($0, 1) }, uniquingKeysWith: +)
        for index in ids.indices where counts[ids[index], default: 0] > 1 {
            ids[index] = sanitized([ids[index], cameras[index].node.device])
        }
        for index in ids.indices {
            let count = seen[ids[index], default: 0]
            seen[ids[index]] = count + 1
            if count > 0 { ids[index] += "-\(count)" }
        }
        return ids.map(shortened)
    }

    /// A serial number with the model that it counts.
    private struct SerialKey: Hashable {
        var vendor, product, serial: String

        init?(_ camera: V4L2DeviceFacts) {
            guard let usb = camera.node.usb, let serial = usb.serial, !serial.isEmpty else { return nil }
            vendor = usb.vendor
            product = usb.product
            self.serial = V4L2DeviceID.sanitized([serial])
        }
    }

    /// Serial numbers that more than one device has.
    private static func sharedSerials(_ cameras: [V4L2DeviceFacts]) -> Set<SerialKey> {
        var devices: [SerialKey: Set<String>] = [:]
        for camera in cameras {
            if let key = SerialKey(camera), let usb = camera.node.usb { devices[key, default: []].insert(usb.device) }
        }
        return Set(devices.filter { $0.value.count > 1 }.keys)
    }

    private static func interface(_ camera: V4L2DeviceFacts) -> String {
        guard let usb = camera.node.usb, !usb.interface.isEmpty else { return "" }
        return "if" + usb.interface
    }

    /// An id of the longest length at most: what is cut off is there as a hash (FNV-1a).
    private static func shortened(_ id: String) -> String {
        guard id.utf8.count > limit else { return id }
        let hash = id.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return String(id.prefix(limit - 17)) + "-" + String(hash, radix: 16)
    }

    /// The parts that there are, with a hyphen between them and for every run of characters that an id can't have.
    private static func sanitized(_ parts: [String]) -> String {
        var id = ""
        for part in parts where !part.isEmpty {
            if !id.isEmpty { id += "-" }
            for byte in part.utf8 {
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"),
                    UInt8(ascii: "-"):
                    id.unicodeScalars.append(UnicodeScalar(byte))
                default: if id.utf8.last != UInt8(ascii: "-") { id += "-" }
                }
            }
        }
        return id
    }
}
