public import BusProtocol
public import JSON

/// What clients on other machines may do, by the role of their key or token.
///
/// The coordinator decides it and publishes it in `state/bus/`. Gateways read it there: so one rule holds for requests
/// and for all media.
public struct RemotePermission: Hashable, Sendable {
    /// What one role comes to.
    private struct Grant: Hashable, Sendable {
        /// The role after the configuration's limit.
        var role: AuthorizationRole
        var media: Set<AuthorizationMedia>
    }

    private var grants: [AuthorizationRole: Grant] = [:]

    private static let roles: [AuthorizationRole] = [.view, .control, .admin]

    public init(_ policy: AuthorizationPolicy) {
        for given in Self.roles {
            let role = min(given, policy.remoteLimit)
            let media = AuthorizationMedia.allCases.filter { policy.status(of: role, $0) == .authorized }
            grants[given] = Grant(role: role, media: Set(media))
        }
    }

    /// Reads ``json``. A role that is missing or not understood may do nothing.
    public init(json: JSONValue) {
        for given in Self.roles {
            guard let grant = json[given.rawValue], let words = grant["media"]?.array,
                let role = grant["role"]?.string.flatMap(AuthorizationRole.init)
            else { continue }
            grants[given] = Grant(
                role: role, media: Set(words.compactMap { $0.string.flatMap(AuthorizationMedia.init) }))
        }
    }

    /// `remote` in `state/bus/`.
    public var json: JSONValue {
        .object(
            Dictionary(
                grants.map { given, grant -> (String, JSONValue) in
                    let media = AuthorizationMedia.allCases.filter(grant.media.contains).map(\.rawValue)
                    return (given.rawValue, ["role": .string(grant.role.rawValue), "media": JSONValue(media)])
                }, uniquingKeysWith: { first, _ in first }))
    }

    /// Why a client whose key or token has that role may not see, hear or use that medium; nil: it may.
    public func refusal(of given: AuthorizationRole, _ media: AuthorizationMedia) -> BusError? {
        grants[given]?.media.contains(media) == true ? nil : refusal(of: given, needed: media.rawValue)
    }

    /// Refuses what a client whose key or token has that role may not do.
    ///
    /// - Parameter needed: the medium, or `control`.
    public func refusal(of given: AuthorizationRole, needed: String) -> BusError {
        let role = grants[given]?.role ?? AuthorizationRole.none
        let message: String =
            if role < given {
                "The bus limits clients on other machines to the role '\(role.rawValue)', which does not allow this; "
                    + "an administrator of the bus can change permission.remote_role in camerabus.toml."
            } else if role == .view, needed == AuthorizationMedia.audio.rawValue {
                "On this bus the role 'view' includes no sound; an administrator of the bus can change "
                    + "permission.view_sound in camerabus.toml."
            } else {
                "The key or token of this client has the role '\(given.rawValue)', which does not allow this; an "
                    + "administrator of the bus can change it with 'camerabus keys role' or 'camerabus tokens role'."
            }
        return BusError(
            .unauthorized, message,
            ["status": .string(AuthorizationStatus.restricted.rawValue), "needed": .string(needed)])
    }
}

extension AuthorizationRole {
    /// The role that a gateway names for a client.
    public init(_ role: Request.Principal.Role) {
        self =
            switch role {
            case .view: .view
            case .control: .control
            case .admin: .admin
            case .nobody: .none
            }
    }
}
