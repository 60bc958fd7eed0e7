import BusProtocol
public import JSON

/// What is stored of devices permanently: which id stands for which camera, its name, and its last configuration.
///
/// A value; its owner decides when to write it to disk. It is bounded: the entry that was not seen for longest goes
/// first, and entries with an alias or a configuration go last. Devices of clients have a share of their own, so that
/// clients cannot make the table forget a camera.
public struct DeviceTable: Hashable, Sendable {
    /// What is stored of one device.
    public struct Entry: Hashable, Sendable {
        /// The name for people.
        public var name: String
        /// Given by a client.
        public var alias: String?
        /// The device id that it has without an alias.
        public var made: String?
        /// The ids that it has had, the newest last. Of clients' devices: none.
        public private(set) var ids: [String] = []
        /// The last committed configuration, as reported by its worker.
        public var committed: JSONValue?
        /// Its stabilization was turned on for sessions or movies, and not off since; ``committed`` has it on then.
        public var isStabilized = false
        /// The same of its smooth focus, for movies.
        public var isSmooth = false
        /// As it was seen last; nil: no camera of this machine's.
        public var facts: CameraFacts?
        /// The same of a microphone.
        public var microphone: MicrophoneFacts?
        /// Seconds since 1970 when it was seen last, or found to be gone.
        public var seen: Int64

        public init(
            name: String, alias: String? = nil, made: String? = nil, committed: JSONValue? = nil,
            facts: CameraFacts? = nil, seen: Int64
        ) {
            self.name = name
            self.alias = alias
            self.made = made
            self.committed = committed
            self.facts = facts
            self.seen = seen
        }

        /// It has, or had, this id.
        public mutating func had(_ id: String) {
            guard !ids.contains(id) else { return }
            ids.append(id)
            if ids.count > DeviceTable.maximumIDs { ids.removeFirst(ids.count - DeviceTable.maximumIDs) }
        }

        /// The less it would be missed, the smaller.
        fileprivate var worth: Int { (alias == nil ? 0 : 2) + (committed == nil ? 0 : 1) }
    }

    public static let version = 1
    public static let maximumEntries = 256
    /// The same of devices of clients.
    public static let maximumSources = 64
    /// Ids of a device that are remembered.
    public static let maximumIDs = 32
    public static let maximumClaims = 1024

    /// By `uniqueID`.
    public private(set) var entries: [String: Entry] = [:]
    /// What each id of a camera stands for.
    public var claims: [String: CameraIdentities.Claim] = [:]
    /// A number that no lock's fence has reached: the runtime directory, where fences are kept, goes with each boot.
    public var fence: UInt64 = 0

    public init() {}

    /// How far ahead of the fences in use ``fence`` is set. It is set again when less than half of that is left: fences
    /// in use must never exceed the stored number.
    private static let fenceReserve: UInt64 = 1 << 16

    /// Fences up to this one may be in use.
    public mutating func reserve(fence used: UInt64) {
        if needsReserve(fence: used) { fence = used &+ Self.fenceReserve }
    }

    /// Whether ``reserve(fence:)`` would change anything.
    public func needsReserve(fence used: UInt64) -> Bool { used &+ Self.fenceReserve / 2 > fence }

    public subscript(uniqueID: String) -> Entry? { entries[uniqueID] }

    /// Changes the entry of a device; a new entry begins with the given name and time.
    ///
    /// - Returns: whether the entry has changed.
    @discardableResult
    public mutating func update(
        _ uniqueID: String, name: String, at seconds: Int64, _ change: (inout Entry) -> Void
    ) -> Bool {
        let before = entries[uniqueID]
        var entry = before ?? Entry(name: name, seen: seconds)
        change(&entry)
        guard entry != before else { return false }
        entries[uniqueID] = entry
        return true
    }

    /// Removes entries beyond the limits.
    ///
    /// - Parameter kept: `uniqueID`s of devices that are in use, which stay.
    public mutating func prune(keeping kept: Set<String>) {
        prune(to: Self.maximumEntries, keeping: kept) { !ClientSource.isSource($0) }
        prune(to: Self.maximumSources, keeping: kept, ClientSource.isSource)
        let tooMany = claims.count - Self.maximumClaims
        if tooMany > 0 {
            // Claims of devices without an entry first; a shared claim stands for all cameras of a maker and goes last.
            let least = claims.filter { entries[$0.key] == nil && !kept.contains($0.key) }
                .sorted { ($0.value.isShared ? 1 : 0, $0.key) < ($1.value.isShared ? 1 : 0, $1.key) }
            for (id, _) in least.prefix(tooMany) { claims[id] = nil }
        }
    }

    private mutating func prune(to maximum: Int, keeping kept: Set<String>, _ isOfShare: (String) -> Bool) {
        let share = entries.filter { isOfShare($0.key) }
        guard share.count > maximum else { return }
        let least = share.filter { !kept.contains($0.key) }
            .sorted { ($0.value.worth, $0.value.seen, $0.key) < ($1.value.worth, $1.value.seen, $1.key) }
        for (uniqueID, _) in least.prefix(share.count - maximum) { entries[uniqueID] = nil }
    }

    // MARK: As JSON

    public var json: JSONValue {
        [
            "version": JSONValue(Self.version), "fence": JSONValue(fence),
            "devices": .object(
                entries.mapValues { entry in
                    .members([
                        "name": .string(entry.name), "alias": entry.alias.map(JSONValue.string),
                        "made": entry.made.map(JSONValue.string),
                        "ids": JSONValue(entry.ids), "committed": entry.committed,
                        "stabilized": entry.isStabilized ? true : nil, "smooth": entry.isSmooth ? true : nil,
                        "facts": entry.facts?.json, "microphone": entry.microphone?.json, "seen": JSONValue(entry.seen),
                    ])
                }),
            "claims": .object(
                claims.mapValues {
                    .members(["place": $0.place.map(JSONValue.string), "shared": .bool($0.isShared)])
                }),
        ]
    }

    /// Why a stored text cannot be read.
    public struct Damage: Error, Hashable, Sendable, CustomStringConvertible {
        public var description: String
    }

    /// Reads what ``json`` writes. If any part is wrong, all of it is refused: half of the entries could swap cameras.
    public init(json: JSONValue) throws(Damage) {
        guard let version = json["version"]?.integer else { throw Damage(description: "it has no version") }
        guard version == Self.version else {
            throw Damage(description: "it has version \(version); this program supports \(Self.version)")
        }
        guard let devices = json["devices"]?.object, let claims = json["claims"]?.object else {
            throw Damage(description: "it has no devices or no claims")
        }
        if let number = json["fence"] {
            guard let fence = number.integer.flatMap({ UInt64(exactly: $0) }) else {
                throw Damage(description: "its fence is not a number")
            }
            self.fence = fence
        }
        var ids = Set(devices.values.flatMap { [$0["alias"]?.string, $0["made"]?.string] }.compactMap(\.self))
        for (uniqueID, value) in devices.sorted(by: { $0.key < $1.key }) {
            guard let name = value["name"]?.string, let seen = value["seen"]?.integer else {
                throw Damage(description: "the entry of \(uniqueID) is incomplete")
            }
            let facts = try value["facts"].map { json throws(Damage) in
                guard let facts = CameraFacts(json: json) else {
                    throw Damage(description: "the facts of \(uniqueID) are incomplete")
                }
                return facts
            }
            let alias = value["alias"]?.string.flatMap { DeviceID.migrated($0, ids.contains) }
            if let alias { ids.insert(alias) }
            var entry = Entry(
                name: name, alias: alias, made: value["made"]?.string, committed: value["committed"],
                facts: facts, seen: seen)
            entry.microphone = try value["microphone"].map { json throws(Damage) in
                guard let facts = MicrophoneFacts(json: json) else {
                    throw Damage(description: "the facts of \(uniqueID) are incomplete")
                }
                return facts
            }
            if !ClientSource.isSource(uniqueID) {
                // A table of an earlier version has the present ids only.
                let earlier = value["ids"]?.array?.compactMap(\.string) ?? [entry.made, entry.alias].compactMap(\.self)
                for id in earlier where DeviceID.isValid(id) { entry.had(id) }
            }
            entry.isStabilized = value["stabilized"]?.bool ?? false
            entry.isSmooth = value["smooth"]?.bool ?? false
            entries[uniqueID] = entry
        }
        for (id, value) in claims {
            guard let isShared = value["shared"]?.bool else {
                throw Damage(description: "the claim \(id) is incomplete")
            }
            self.claims[id] = CameraIdentities.Claim(place: value["place"]?.string, isShared: isShared)
        }
        guard entries.count <= 4 * Self.maximumEntries, self.claims.count <= 4 * Self.maximumClaims else {
            throw Damage(description: "it has too many entries")
        }
    }
}
