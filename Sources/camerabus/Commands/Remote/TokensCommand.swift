import ArgumentParser
import BusProtocol
import JSON
import LinuxIO

struct TokensCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tokens", abstract: "Says who may use the page here from other machines, by their tokens.",
        discussion: """
            camerabus-gateway's page, its pictures and its numbers are for this machine alone, until web.tokens in gateway.toml names a file of tokens. Each \
            has a role: view sees and hears; control also locks, changes and records; admin may all. Browsers ask for the token once; tools send it as \
            'Authorization: Bearer TOKEN'. The gateway follows the file at once: who is revoked loses what he has within a second. A line of it that is \
            wrong lets nobody in, and hinders nobody else. Of a gateway of your own the file is named by --file, without sudo.

            EXAMPLES:
              sudo camerabus tokens new Ada --role control         # prints the token, for Ada alone
              sudo camerabus tokens new Prometheus
              sudo camerabus tokens
              sudo camerabus tokens role Ada view
              sudo camerabus tokens revoke Ada
            """,
        subcommands: [
            List.self, New.self, RemoteUserRoleCommand<TokensFileArgument>.self,
            RemoteUserRevokeCommand<TokensFileArgument>.self,
        ], defaultSubcommand: List.self)

    static let nameHelp: ArgumentHelp = "Whose token it is, which others see as holder of locks."
}

/// The file of tokens that a gateway lets in.
struct TokensFileArgument: RemoteUserFile {
    @Flag(help: "Print JSON instead of a table.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "The gateway's file of tokens, web.tokens (default: $CAMERABUS_TOKENS, else /etc/camerabus/web-tokens).",
            valueName: "file"),
        completion: .file())
    var file: String?

    static let credential = RemoteCredential.token
    static let place = (variable: "CAMERABUS_TOKENS", path: "/etc/camerabus/web-tokens")
}

extension TokensCommand {
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Lists who has a token; the tokens themselves are printed when they are made.",
            discussion: "With --json: {\"tokens\": [{\"name\", \"role\"}]}.")

        @OptionGroup var tokens: TokensFileArgument

        func run() async throws {
            let entries = try tokens.read().entries
            if tokens.json {
                let all = entries.map { entry -> JSONValue in
                    ["name": .string(entry.name), "role": .string(entry.role.rawValue)]
                }
                return try Output.json(["tokens": .array(all)])
            }
            guard !entries.isEmpty else {
                return Output.note("Nobody is let in: 'camerabus tokens new' changes that.")
            }
            var table = Table("NAME", "ROLE")
            for entry in entries { table.add(entry.name, entry.role.rawValue) }
            try table.print()
        }
    }

    struct New: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "new", abstract: "Makes a token, lets it in, and prints it.",
            discussion: """
                It is a secret of whom it is for: 128 random bits, in 32 characters. Where there is no file it is made: by root for root and the service's \
                gateway, by others for themselves alone. With --json: {"name", "role", "token"}.
                """)

        @OptionGroup var tokens: TokensFileArgument

        @Argument(help: nameHelp)
        var name: String

        @Option(help: ArgumentHelp("view, control or admin.", valueName: "role"))
        var role = RemoteRoleArgument(.view)

        func validate() throws { try TokensFileArgument.validate(name: TokensFileArgument.credential.plainName(name)) }

        func run() async throws {
            let token = hexadecimal(randomBytes(16))
            let name = TokensFileArgument.credential.plainName(name)
            let isNew = try tokens.change { all in
                do throws(RemoteUserList.Problem) {
                    try all.add(RemoteUserList.Entry(role: role.role, key: token, name: name))
                } catch {
                    throw Failure(status: ExitStatus.refused, description: Table.printable(error.description))
                }
            }
            do {
                if tokens.json {
                    return try Output.json([
                        "name": .string(name), "role": .string(role.role.rawValue), "token": .string(token),
                    ])
                }
                try Output.line(token)
            } catch {
                // Nobody has it, and nobody else shall.
                try tokens.change { all in _ = all.remove(name) }
                throw error
            }
            guard isNew else { return }
            let path = CurrentProcess.absolutePath(tokens.path)
            Output.note("The file is new. A gateway reads it when it is started with, in its gateway.toml below [web]:")
            Output.note("    tokens = \(JSONValue.string(path))")
            Output.note("and the service's is started anew by: sudo systemctl restart camerabus-gateway")
        }
    }
}
