import CaptureCore
import JSON

/// A device that this coordinator has a worker for.
struct ManagedDevice: Hashable {
    /// How the worker finds it.
    enum Source: Hashable {
        case virtual(Int)
        case node(String)
    }

    /// The id in topics, socket names and requests: the alias if there is one.
    let id: String
    let identity: DeviceIdentity
    let source: Source

    /// The device of that number among the virtual cameras.
    static func virtual(_ number: Int, aliases: [String: String]) -> ManagedDevice {
        let uniqueID = "virtual-\(number)"
        let position: DevicePosition =
            switch number {
            case 0: .back
            case 1: .front
            default: .external
            }
        return ManagedDevice(
            id: aliases[uniqueID] ?? "cam\(number)",
            identity: DeviceIdentity(
                uniqueID: uniqueID, localizedName: "Virtual Camera \(number)", type: .virtual, position: position,
                driver: "virtual", bus: "virtual:\(number)"),
            source: .virtual(number))
    }

    /// A camera that was found; nil when it has no node.
    static func hardware(_ identity: DeviceIdentity, aliases: [String: String]) -> ManagedDevice? {
        guard let node = identity.node else { return nil }
        return ManagedDevice(
            id: aliases[identity.uniqueID] ?? derivedID(identity), identity: identity, source: .node(node))
    }

    /// An id without an alias: the name, and four digits of the `uniqueID`'s hash, so that two cameras of one model never
    /// swap their ids by the order in which they are found.
    private static func derivedID(_ identity: DeviceIdentity) -> String {
        var hash: UInt32 = 2_166_136_261
        for byte in identity.uniqueID.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        let digits = String(hash & 0xFFFF, radix: 16)
        var slug = ""
        for byte in identity.localizedName.lowercased().utf8 {
            let isPlain = (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte)
            if isPlain {
                slug.unicodeScalars.append(UnicodeScalar(byte))
            } else if !slug.isEmpty, !slug.hasSuffix("-") {
                slug.append("-")
            }
        }
        slug = String(slug.prefix(24))
        while slug.hasSuffix("-") { slug.removeLast() }
        return "\(slug.isEmpty ? "camera" : slug)-\(String(repeating: "0", count: 4 - digits.count))\(digits)"
    }
}
