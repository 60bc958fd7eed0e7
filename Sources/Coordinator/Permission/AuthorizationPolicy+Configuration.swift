import CaptureCore
import LinuxIO

extension AuthorizationPolicy {
    /// The roles of users by the configuration and the machine's user database, which may wait for a network; and keys
    /// without a user.
    static func resolved(
        _ configuration: Configuration, owner: UInt32
    ) -> (policy: AuthorizationPolicy, unknown: [String]) {
        var unknown: [String] = []
        let policy = AuthorizationPolicy(configuration, owner: owner) { unknown.append($0) }
        return (policy, unknown)
    }

    /// - Parameter unknown: gets the keys without a user.
    private init(_ configuration: Configuration, owner: UInt32, unknown: (String) -> Void) {
        self.init(owner: owner)
        standard = configuration.standardRole
        remoteLimit = configuration.remoteRole
        viewHasSound = configuration.viewHasSound
        for (name, role) in configuration.userRoles {
            if let uid = UInt32(name) ?? UserDatabase.userID(named: name) {
                users[uid] = role
            } else {
                unknown("permission.users.\(name)")
            }
        }
        let gatewayName = configuration.gateway ?? Self.gatewayUser
        gateway = UInt32(gatewayName) ?? UserDatabase.userID(named: gatewayName)
        if let gateway {
            // It looks for others.
            users[gateway] = users[gateway] ?? .view
        } else if configuration.gateway != nil {
            unknown("permission.gateway")
        }
        for (name, role) in configuration.groupRoles {
            let group = UInt32(name).map { UserDatabase.group($0) ?? ($0, []) } ?? UserDatabase.group(named: name)
            guard let group else {
                unknown("permission.groups.\(name)")
                continue
            }
            groups[group.gid] = max(role, groups[group.gid] ?? role)
            for uid in group.members.prefix(Self.maximumMembers).compactMap(UserDatabase.userID(named:)) {
                members[uid] = max(role, members[uid] ?? role)
            }
        }
    }

    /// The user of the gateway's service, where that is installed (`deploy/sysusers.conf`).
    private static let gatewayUser = "camerabus-gateway"

    /// Members of a group that are looked up.
    private static let maximumMembers = 4096
}
