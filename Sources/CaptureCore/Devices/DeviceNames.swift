import BusProtocol

/// Which device id each device has, in topics, socket names and requests: its alias, else a name made for it that stays
/// its own.
public enum DeviceNames {
    /// Where a device comes from: ids go to those of the earlier ones first.
    public enum Origin: Int, Hashable, Sendable {
        /// It is one of the machine's own.
        case machine
        /// Whoever runs the bus plays it.
        case replay
        /// A client made it. What is, or was, the id of a device of the other kinds is never one of its ids.
        case client
    }

    /// A device that wants an id.
    public struct Device: Hashable, Sendable {
        public var uniqueID: String
        /// What people call it.
        public var name: String
        /// The id that it has by its kind (`cam0`), if free; nil: one is made of its name.
        public var preferred: String?
        /// Given by a client.
        public var alias: String?
        /// The one that was made for it before.
        public var made: String?
        /// All ids that it has had.
        public var earlier: [String]
        /// Who goes first where two want one id.
        public var origin: Origin

        public init(
            uniqueID: String, name: String, preferred: String? = nil, alias: String? = nil, made: String? = nil,
            earlier: [String] = [], origin: Origin = .machine
        ) {
            self.earlier = earlier
            self.origin = origin
            self.uniqueID = uniqueID
            self.name = name
            self.preferred = preferred
            self.alias = alias
            self.made = made
        }

        /// Ids that are kept from clients' devices for this one.
        fileprivate var own: [String] { [alias, made, preferred].compactMap(\.self) + earlier }
    }

    /// What a device is called.
    public struct Name: Hashable, Sendable {
        public var id: String
        /// The id that it has without an alias; nil: none was needed so far.
        public var made: String?
    }

    /// The ids by `uniqueID`. Aliases of the configuration go first, then those that clients gave, then names that were
    /// made before.
    ///
    /// - Parameters:
    ///   - devices: all that are known, plugged in or not, so that none loses its name to another while it is away.
    ///   - configured: aliases by `uniqueID`; they are kept free also for devices that nobody has seen yet.
    public static func assign(_ devices: [Device], configured: [String: String]) -> [String: Name] {
        var owners: [String: String] = [:]
        for (uniqueID, alias) in configured { owners[alias] = uniqueID }
        let reserved = Set(devices.lazy.filter { $0.origin != .client }.flatMap(\.own))
        func take(_ id: String?, _ device: Device) -> String? {
            guard let id, DeviceID.isValid(id), owners[id] == nil || owners[id] == device.uniqueID,
                device.origin != .client || !reserved.contains(id)
            else { return nil }
            owners[id] = device.uniqueID
            return id
        }
        let sorted = devices.sorted { ($0.origin.rawValue, $0.uniqueID) < ($1.origin.rawValue, $1.uniqueID) }
        var names = assign(sorted.filter { $0.origin != .client }, configured, take)
        names.merge(assign(sorted.filter { $0.origin == .client }, configured, take)) { first, _ in first }
        return names
    }

    private static func assign(
        _ devices: [Device], _ configured: [String: String], _ take: (String?, Device) -> String?
    ) -> [String: Name] {
        var names: [String: Name] = [:]
        for device in devices {
            let alias = configured[device.uniqueID] ?? take(device.alias, device)
            if let alias { names[device.uniqueID] = Name(id: alias, made: device.made) }
        }
        for device in devices {
            let made = take(device.preferred, device) ?? take(device.made, device)
            if let alias = names[device.uniqueID]?.id {
                names[device.uniqueID] = Name(id: alias, made: made)
            } else if let made {
                names[device.uniqueID] = Name(id: made, made: made)
            }
        }
        for device in devices where names[device.uniqueID] == nil {
            for candidate in candidates(device) where names[device.uniqueID] == nil {
                names[device.uniqueID] = take(candidate, device).map { Name(id: $0, made: $0) }
            }
        }
        return names
    }

    /// A device that has not the id that it would have by its kind or by its alias, because another one has it.
    public struct Collision: Hashable, Sendable {
        public var uniqueID: String
        public var wanted: String
        public var given: String
        /// Who has it: a `uniqueID`.
        public var owner: String
    }

    /// Where ids collide, by `uniqueID`. For the devices and aliases see ``assign(_:configured:)``.
    public static func collisions(_ devices: [Device], configured: [String: String]) -> [Collision] {
        let names = assign(devices, configured: configured)
        return devices.sorted { $0.uniqueID < $1.uniqueID }.compactMap { device in
            guard configured[device.uniqueID] == nil, device.origin == .machine,
                let wanted = device.alias ?? device.preferred, let given = names[device.uniqueID]?.id, given != wanted,
                let owner = owner(of: wanted, devices, configured: configured), owner != device.uniqueID
            else { return nil }
            return Collision(uniqueID: device.uniqueID, wanted: wanted, given: given, owner: owner)
        }
    }

    /// Who has, or is promised, this id.
    public static func owner(of id: String, _ devices: [Device], configured: [String: String]) -> String? {
        if let uniqueID = configured.first(where: { $0.value == id })?.key { return uniqueID }
        let names = assign(devices, configured: configured)
        if let uniqueID = names.first(where: { $0.value.id == id })?.key { return uniqueID }
        // What it goes back to without its alias is still its own.
        return names.first { $0.value.made == id }?.key ?? devices.first { $0.preferred == id }?.uniqueID
    }

    /// The device that has, or had, this id, and is no client's: no client's device gets it. For the devices see
    /// ``assign(_:configured:)``.
    public static func keeper(of id: String, _ devices: [Device]) -> Device? {
        let keepers = devices.filter { $0.origin != .client && $0.own.contains(id) }
        // The device with this id now precedes one that had it before.
        return keepers.first { $0.alias == id } ?? keepers.min { $0.uniqueID < $1.uniqueID }
    }

    /// The name, and as many digits of the `uniqueID`'s hash as it takes.
    private static func candidates(_ device: Device) -> [String] {
        let hashed = [4, 8, 16].map { count in
            let slug = Slug.name(device.name, limit: min(24, DeviceID.maxBytes - 1 - count))
            return "\(slug.isEmpty ? "camera" : slug)-\(Slug.digits(device.uniqueID, count: count))"
        }
        // 64 bits that are the same: nobody has ever seen it, and it is to be no device's loss.
        return hashed + (1...64).map { "camera-\(Slug.digits("\(device.uniqueID) \($0)", count: 16))" }
    }
}
