import ArgumentParser
import BusProtocol
import JSON
import LinuxIO

struct TokensCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tokens", abstract: "Manages tokens for access to this machine's page from other machines.",
        discussion: """
            By default only this machine can open the page of camerabus-gateway, with its pictures and metrics. For \
            other machines set web.tokens in gateway.toml to a file of tokens. Each token has a role: view allows to \
            see and hear; control also to lock, change and record; admin allows everything. A browser asks for the \
            token once. Other tools send it as 'Authorization: Bearer TOKEN'. The gateway watches the file: a revoked \
            user loses access within a second. An invalid line is ignored; other lines still count. For a gateway of \
            your own, name its file with --file; sudo is not needed then.

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

    static let nameHelp: ArgumentHelp = "The name of the token's user; others see it as the holder of locks."
}

/// The tokens file of a gateway, as an argument.
struct TokensFileArgument: RemoteUserFile {
    @Flag(help: "Print JSON instead of a table.")
    var json = false

    @Option(
        help: ArgumentHelp(
            """
            The file of tokens, as web.tokens in gateway.toml (default: $CAMERABUS_TOKENS, else \
            /etc/camerabus/web-tokens).
            """,
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
            abstract: "Lists the users with a token. A token itself is printed only when it is made.",
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
                return Output.note("There are no tokens yet. Make one with 'camerabus tokens new'.")
            }
            var table = Table("NAME", "ROLE")
            for entry in entries { table.add(entry.name, entry.role.rawValue) }
            try table.print()
        }
    }

    struct New: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "new", abstract: "Makes a token, allows it, and prints it.",
            discussion: """
                The token is a secret of its user: 128 random bits in 32 characters. A missing file is created: if \
                root does it, for root and the gateway of the service; if another user does it, for that user alone. \
                With --json: {"name", "role", "token"}.
                """)

        @OptionGroup var tokens: TokensFileArgument

        @Argument(help: nameHelp)
        var name: String

        @Option(help: ArgumentHelp("The role: view, control or admin.", valueName: "role"))
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
                // The token was not printed, so nobody may use it.
                try tokens.change { all in _ = all.remove(name) }
                throw error
            }
            guard isNew else { return }
            let path = CurrentProcess.absolutePath(tokens.path)
            Output.note("The file is new. To use it, write this into the gateway's gateway.toml, in [web]:")
            Output.note("    tokens = \(JSONValue.string(path))")
            Output.note("Then restart the gateway. For the service: sudo systemctl restart camerabus-gateway")
        }
    }
}
