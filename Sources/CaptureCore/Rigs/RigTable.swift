public import BusProtocol
public import JSON

/// A named group of devices that are locked, configured and matched as one. The first of them leads.
public struct Rig: Hashable, Sendable {
    /// `uniqueID`s, or device ids as a configuration file has them; each once.
    public var devices: [String]
    /// How far apart frames of one set may be, nanoseconds; nil: half of the lead's interval.
    public var tolerance: Int64?
    /// The user that made it; nil: it belongs to the administrators.
    public var owner: UInt32?

    public init(devices: [String], tolerance: Int64? = nil, owner: UInt32? = nil) {
        self.devices = devices
        self.tolerance = tolerance
        self.owner = owner
    }
}

/// The rigs: those of the configuration file, which only the file can change, and those that clients made, which are
/// stored.
public struct RigTable: Hashable, Sendable, StoredTable {
    public static let version = 1
    public static let maximumRigs = 64
    /// The limit for one user without administrator rights.
    public static let maximumOfUser = 16
    /// Devices of one: as many as one lock takes.
    public static let maximumDevices = BusLimits.maxDevicesPerLock
    /// The widest tolerance that can be asked for, nanoseconds.
    public static let maximumTolerance: Int64 = 10_000_000_000

    /// Those that clients made, by name.
    public private(set) var made: [String: Rig] = [:]
    /// Those of the configuration file, by name: they have priority, and are not stored here.
    public var configured: [String: Rig] = [:]

    public init() {}

    /// The rig that has that name.
    public subscript(name: String) -> Rig? { configured[name] ?? made[name] }

    /// The names, in the order of the alphabet.
    public var names: [String] { Set(configured.keys).union(made.keys).sorted() }

    public func isConfigured(_ name: String) -> Bool { configured[name] != nil }

    /// Adds a rig; it replaces a rig of the same name, whose user it keeps.
    ///
    /// - Throws: `invalidParams` for what is no name or stands in the configuration file, `unauthorized` for a rig of
    ///   another user, `limitExceeded` for one too many.
    public mutating func set(_ rig: Rig, as name: String, by editor: Editor) throws(BusError) {
        try refuseConfigured(name)
        guard DeviceID.isValid(name) else {
            throw .invalidParams("name", "must be \(DeviceID.form)")
        }
        if made[name] == nil {
            try editor.checkPlace(
                for: "rigs", among: made.values.map(\.owner), maximum: Self.maximumRigs, ofUser: Self.maximumOfUser,
                delete: "rig.delete")
        }
        try refuseOthers(name, editor)
        var rig = rig
        rig.owner = made[name].map(\.owner) ?? editor.uid
        made[name] = rig
    }

    /// Removes a rig that a client made.
    ///
    /// - Throws: `rigNotFound`, `unauthorized` for a rig of another user, or `invalidParams` for one of the
    ///   configuration file.
    public mutating func delete(_ name: String, by editor: Editor) throws(BusError) {
        try refuseConfigured(name)
        guard made[name] != nil else {
            let known = names.isEmpty ? "There are none." : "There are: \(names.joined(separator: ", "))."
            throw BusError(.rigNotFound, "No rig is called '\(name)'. \(known)", ["rig": .string(name)])
        }
        try refuseOthers(name, editor)
        made[name] = nil
    }

    private func refuseOthers(_ name: String, _ editor: Editor) throws(BusError) {
        guard let rig = made[name] else { return }
        try editor.check("The rig '\(name)'", of: rig.owner, ["rig": .string(name)])
    }

    private func refuseConfigured(_ name: String) throws(BusError) {
        guard isConfigured(name) else { return }
        throw .invalidParams("name", "the rig '\(name)' is in the configuration file; change it there")
    }

    // MARK: As JSON

    public var json: JSONValue {
        [
            "version": JSONValue(Self.version),
            "rigs": .object(
                made.mapValues { rig in
                    .members([
                        "devices": JSONValue(rig.devices), "tolerance": rig.tolerance.map { JSONValue($0) },
                        "owner": rig.owner.map { JSONValue($0) },
                    ])
                }),
        ]
    }

    /// Reads what ``json`` writes. If any part is wrong, all of it is refused.
    public init(json: JSONValue) throws(StoredTableError) {
        let members = try StoredTableError.members("rigs", of: json, version: Self.version)
        guard members.count <= 4 * Self.maximumRigs else {
            throw StoredTableError(description: "it has too many entries")
        }
        for (name, value) in members {
            let listed = value["devices"]?.array ?? []
            let devices = listed.compactMap(\.string)
            let tolerance = value["tolerance"]
            guard let valid = DeviceID.migrated(name, { members[$0] != nil || made[$0] != nil }),
                !devices.isEmpty, devices.count == listed.count,
                devices.count <= Self.maximumDevices, Set(devices).count == devices.count,
                tolerance == nil || tolerance?.integer.map({ (0...Self.maximumTolerance).contains($0) }) == true
            else { throw StoredTableError(description: "the rig '\(name)' is incomplete") }
            // One of an earlier version has no user.
            made[valid] = Rig(
                devices: devices, tolerance: tolerance?.integer,
                owner: value["owner"]?.integer.flatMap { UInt32(exactly: $0) })
        }
    }
}
