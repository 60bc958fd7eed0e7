public import BusProtocol
public import JSON

/// The named profiles of settings, in their stored form. A value; its owner decides when to write it to disk.
public struct ProfileTable: Hashable, Sendable, StoredTable {
    public static let version = 1
    public static let maximumProfiles = 256
    /// The limit for one user without administrator rights.
    public static let maximumOfUser = 64
    /// Bytes of one profile as JSON: controls can be whole tables.
    public static let maximumProfileBytes = 128 << 10

    /// By name.
    public private(set) var profiles: [String: Profile] = [:]

    public init() {}

    public subscript(name: String) -> Profile? { profiles[name] }

    /// The names, in the order of the alphabet.
    public var names: [String] { profiles.keys.sorted() }

    /// Adds a profile; it replaces a profile of the same name, whose user it keeps.
    ///
    /// - Returns: the profile as it is stored.
    /// - Throws: `invalidParams` for what is no name, `unauthorized` for a profile of another user, `limitExceeded` for
    ///   one too many, or too large a one.
    @discardableResult
    public mutating func save(_ profile: Profile, as name: String, by editor: Editor) throws(BusError) -> Profile {
        guard DeviceID.isValid(name) else {
            throw .invalidParams("name", "must be \(DeviceID.form)")
        }
        if profiles[name] == nil {
            try editor.checkPlace(
                for: "profiles", among: profiles.values.map(\.owner), maximum: Self.maximumProfiles,
                ofUser: Self.maximumOfUser, delete: "profile.delete")
        }
        guard Self.json(profile).serialized.count <= Self.maximumProfileBytes else {
            throw BusError(
                .limitExceeded, "These settings have more than \(Self.maximumProfileBytes) bytes; save fewer devices.",
                ["limit": "profileBytes", "maximum": JSONValue(Self.maximumProfileBytes)])
        }
        try refuseOthers(name, editor)
        var profile = profile
        profile.owner = profiles[name].map(\.owner) ?? editor.uid
        profiles[name] = profile
        return profile
    }

    private func refuseOthers(_ name: String, _ editor: Editor) throws(BusError) {
        guard let profile = profiles[name] else { return }
        try editor.check("The profile '\(name)'", of: profile.owner, ["profile": .string(name)])
    }

    /// The profile of that name.
    ///
    /// - Throws: `profileNotFound`.
    public func profile(_ name: String) throws(BusError) -> Profile {
        guard let profile = profiles[name] else {
            let known = names.isEmpty ? "There are none." : "There are: \(names.joined(separator: ", "))."
            throw BusError(.profileNotFound, "No profile is called '\(name)'. \(known)", ["profile": .string(name)])
        }
        return profile
    }

    /// Removes the profile of that name.
    ///
    /// - Throws: `profileNotFound`, or `unauthorized` for a profile of another user.
    public mutating func delete(_ name: String, by editor: Editor) throws(BusError) {
        _ = try profile(name)
        try refuseOthers(name, editor)
        profiles[name] = nil
    }

    // MARK: As JSON

    private static func json(_ profile: Profile) -> JSONValue {
        .members([
            "saved": JSONValue(profile.saved), "devices": .array(profile.devices.map(\.json)),
            "owner": profile.owner.map { JSONValue($0) },
        ])
    }

    public var json: JSONValue {
        ["version": JSONValue(Self.version), "profiles": .object(profiles.mapValues(Self.json))]
    }

    /// Reads what ``json`` writes. If any part is wrong, all of it is refused.
    public init(json: JSONValue) throws(StoredTableError) {
        let members = try StoredTableError.members("profiles", of: json, version: Self.version)
        guard members.count <= 4 * Self.maximumProfiles else {
            throw StoredTableError(description: "it has too many entries")
        }
        for (name, value) in members {
            let devices = value["devices"]?.array ?? []
            let settings = devices.compactMap(DeviceSettings.init(json:))
            guard let valid = DeviceID.migrated(name, { members[$0] != nil || profiles[$0] != nil }),
                let saved = value["saved"]?.integer, !settings.isEmpty,
                settings.count == devices.count
            else { throw StoredTableError(description: "the profile '\(name)' is incomplete") }
            // One of an earlier version has no user.
            profiles[valid] = Profile(
                devices: settings, saved: saved, owner: value["owner"]?.integer.flatMap { UInt32(exactly: $0) })
        }
    }
}
