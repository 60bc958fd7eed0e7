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
            abstract:
                "Changes the role of a \(List.credential.rawValue). Its connections end; they return with the new role."
        )
    }

    @OptionGroup var list: List

    @Argument(help: "The name.")
    var name: String

    @Argument(help: "The role: view, control or admin.")
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
            abstract: "Revokes a \(List.credential.rawValue). Its connections end within a second.")
    }

    @OptionGroup var list: List

    @Argument(help: "The name.")
    var name: String

    func run() async throws {
        try list.change { all in
            guard all.remove(name) else { throw List.unknown(name, in: all) }
        }
    }
}
