public import JSON

/// Who has which role, as the configuration says, by uid and gid.
///
/// A user's own rule goes before those of groups; of several groups' rules the one with most rights counts. The groups
/// that count are the one that the kernel names for a connection, and those in which the machine's user database had
/// the user when the configuration was read.
public struct AuthorizationPolicy: Hashable, Sendable {
    /// The user that the bus runs as: an administrator, as root is, whatever else is said.
    public var owner: UInt32
    /// Of everybody who is not named.
    public var standard = AuthorizationRole.ask
    public var users: [UInt32: AuthorizationRole] = [:]
    public var groups: [UInt32: AuthorizationRole] = [:]
    /// What users are by the groups that they are members of.
    public var members: [UInt32: AuthorizationRole] = [:]
    /// Who may ask for others; nil: administrators alone.
    public var gateway: UInt32?
    /// Users in whose name the gateway sends requests. They never connect to workers, which do not know them.
    public var remotes: [UInt32: AuthorizationRole] = [:]
    /// What they may at most, whatever the gateway says.
    public var remoteLimit = AuthorizationRole.admin
    /// Whether the role `view` includes sound.
    public var viewHasSound = true

    public init(owner: UInt32) { self.owner = owner }

    /// - Parameter groups: those that the kernel names.
    public func role(uid: UInt32, groups: Set<UInt32>) -> AuthorizationRole {
        if uid == 0 || uid == owner { return .admin }
        if RemoteUser.uids.contains(uid) { return min(remotes[uid] ?? AuthorizationRole.none, remoteLimit) }
        if let role = users[uid] { return role }
        let roles = groups.compactMap { self.groups[$0] } + (members[uid].map { [$0] } ?? [])
        return roles.max() ?? standard
    }

    /// What the user's role says of a medium; nil: that a decision is needed.
    ///
    /// - Parameter groups: those that the kernel names.
    public func status(uid: UInt32, groups: Set<UInt32>, _ media: AuthorizationMedia) -> AuthorizationStatus? {
        let role = role(uid: uid, groups: groups)
        // The gateway hears for others. What these may hear is decided for each of them.
        if uid == gateway, role == .view, media == .audio { return .authorized }
        return status(of: role, media)
    }

    /// What a role says of a medium; nil: that a decision is needed.
    public func status(of role: AuthorizationRole, _ media: AuthorizationMedia) -> AuthorizationStatus? {
        switch (role, media) {
        case (.none, _): .restricted
        case (.ask, _): nil
        case (.view, .video): .authorized
        case (.view, .audio): viewHasSound ? .authorized : .restricted
        case (.view, _): .restricted
        case (.control, _), (.admin, _): .authorized
        }
    }

    public var json: JSONValue {
        [
            "owner": JSONValue(owner), "default": .string(standard.rawValue), "users": Self.json(users),
            "groups": Self.json(groups), "members": Self.json(members), "viewSound": .bool(viewHasSound),
            "gateway": gateway.map { JSONValue($0) } ?? .null,
        ]
    }

    /// nil when it is none.
    public init?(json: JSONValue) {
        guard let owner = json["owner"]?.integer.flatMap({ UInt32(exactly: $0) }),
            let standard = json["default"]?.string.flatMap(AuthorizationRole.init),
            let users = Self.roles(json["users"]), let groups = Self.roles(json["groups"]),
            let members = Self.roles(json["members"]), let viewHasSound = json["viewSound"]?.bool
        else { return nil }
        (self.owner, self.standard, self.viewHasSound) = (owner, standard, viewHasSound)
        gateway = json["gateway"]?.integer.flatMap { UInt32(exactly: $0) }
        (self.users, self.groups, self.members) = (users, groups, members)
    }

    private static func json(_ roles: [UInt32: AuthorizationRole]) -> JSONValue {
        .object(Dictionary(roles.map { ("\($0.key)", .string($0.value.rawValue)) }) { first, _ in first })
    }

    private static func roles(_ json: JSONValue?) -> [UInt32: AuthorizationRole]? {
        guard let members = json?.object else { return nil }
        var roles: [UInt32: AuthorizationRole] = [:]
        for (name, value) in members {
            guard let id = UInt32(name), let role = value.string.flatMap(AuthorizationRole.init) else { return nil }
            roles[id] = role
        }
        return roles
    }
}

/// The users with access to the sockets of one device: what its worker knows of permission, also without a
/// coordinator.
public struct AccessList: Hashable, Sendable {
    public var policy: AuthorizationPolicy
    public var media: AuthorizationMedia
    /// Users whom an administrator has allowed to.
    public var granted: Set<UInt32>

    public init(policy: AuthorizationPolicy, media: AuthorizationMedia, granted: Set<UInt32>) {
        self.policy = policy
        self.media = media
        self.granted = granted
    }

    /// Nobody but root and this user: where nothing else is known.
    public static func closed(owner: UInt32) -> AccessList {
        var policy = AuthorizationPolicy(owner: owner)
        policy.standard = .none
        return AccessList(policy: policy, media: .video, granted: [])
    }

    /// Whether the user, whose group the kernel says is this one, may have what the device gives.
    public func admits(uid: UInt32, gid: UInt32) -> Bool {
        let status = policy.status(uid: uid, groups: [gid], media)
        return (status ?? (granted.contains(uid) ? .authorized : .notDetermined)) == .authorized
    }

    public var json: JSONValue {
        [
            "policy": policy.json, "media": .string(media.rawValue),
            "granted": .array(granted.sorted().map { JSONValue($0) }),
        ]
    }

    /// nil when it is none.
    public init?(json: JSONValue) {
        guard let policy = json["policy"].flatMap(AuthorizationPolicy.init(json:)),
            let media = json["media"]?.string.flatMap(AuthorizationMedia.init),
            let list = json["granted"]?.array
        else { return nil }
        let granted = list.compactMap { $0.integer.flatMap { UInt32(exactly: $0) } }
        guard granted.count == list.count else { return nil }
        self.init(policy: policy, media: media, granted: Set(granted))
    }
}
