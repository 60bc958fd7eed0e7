import ArgumentParser
import BusProtocol

/// A role as an argument.
struct RemoteRoleArgument: ExpressibleByArgument {
    var role: Request.Principal.Role

    init(_ role: Request.Principal.Role) { self.role = role }

    init?(argument: String) {
        guard let role = RemoteUserList.roles.first(where: { $0.rawValue == argument }) else { return nil }
        self.role = role
    }

    static var allValueStrings: [String] { RemoteUserList.roles.map(\.rawValue) }
    var defaultValueDescription: String { role.rawValue }
}

/// `role` of keys and of tokens.
struct RemoteUserRoleCommand<List: RemoteUserFile>: AsyncParsableCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "role",
            abstract: "Changes the role of a \(List.credential.rawValue).",
            discussion: """
                Clients that use it are disconnected within a second. When they connect again, they have the new role: \
                view allows to see and hear; control also to lock, change and record; admin allows everything.

                EXAMPLE:
                  sudo camerabus \(List.credential.rawValue)s role ann view
                """)
    }

    @OptionGroup var list: List

    @Argument(help: "Its name; 'camerabus \(List.credential.rawValue)s' lists the names.")
    var name: String

    @Argument(help: "The new role: view, control or admin.")
    var role: RemoteRoleArgument

    func run() async throws {
        try list.change { all in
            guard all.setRole(role.role, of: name) else { throw List.unknown(name, in: all) }
        }
    }
}

/// `revoke` of keys and of tokens.
struct RemoteUserRevokeCommand<List: RemoteUserFile>: AsyncParsableCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "revoke",
            abstract: "Revokes a \(List.credential.rawValue): it gives no access any more.",
            discussion: """
                Clients that use it are disconnected within a second. 'camerabus help \(List.credential.rawValue)s' \
                explains how other machines get access.

                EXAMPLE:
                  sudo camerabus \(List.credential.rawValue)s revoke ann
                """)
    }

    @OptionGroup var list: List

    @Argument(help: "Its name; 'camerabus \(List.credential.rawValue)s' lists the names.")
    var name: String

    func run() async throws {
        try list.change { all in
            guard all.remove(name) else { throw List.unknown(name, in: all) }
        }
    }
}
