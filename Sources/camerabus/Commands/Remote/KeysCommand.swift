import ArgumentParser
import BusProtocol
import Glibc
import JSON
import LinuxIO
import ZeroMQ

struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "Says which other machines may use the cameras here, by their keys.",
        discussion: """
            Clients on other machines come in through camerabus-gateway, encrypted. Each has a pair of keys: the secret one stays where it was \
            made, the public one is added here, with a role. view sees and hears; control also locks, changes and records; admin may all. The gateway \
            follows the file at once: who is revoked loses what it has within a second.

            On the other machine 'keys new' makes a pair, here 'keys add' lets it in, and 'keys server' prints the key by which the other side \
            knows this machine again. With CAMERABUS_RUNTIME_DIR=tcp://HOST:7350, CAMERABUS_SERVER_KEY and CAMERABUS_KEY, the file with its own keys, \
            'camerabus' on that machine works as here, but for what needs the same machine.

            EXAMPLES:
              camerabus keys new laptop >laptop.pub                # on the laptop: laptop.key stays there
              sudo camerabus keys add laptop laptop.pub --role control
              sudo camerabus keys server
              camerabus keys
              sudo camerabus keys role laptop view
              sudo camerabus keys revoke laptop
            """,
        subcommands: [
            List.self, New.self, Add.self, RemoteUserRoleCommand<KeysFileArgument>.self,
            RemoteUserRevokeCommand<KeysFileArgument>.self,
            Server.self,
        ], defaultSubcommand: List.self)

    static let nameHelp: ArgumentHelp = "The key's name, which others see as holder of locks."
}

/// The file of keys that a gateway lets in.
struct KeysFileArgument: RemoteUserFile {
    @Flag(help: "Print JSON instead of a table.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "The gateway's file of keys (default: $CAMERABUS_KEYS, else /etc/camerabus/keys).", valueName: "file"),
        completion: .file())
    var file: String?

    static let credential = RemoteCredential.key
    static let place = (variable: "CAMERABUS_KEYS", path: "/etc/camerabus/keys")

    /// The public key in that file.
    static func publicKey(in path: String) throws(Failure) -> String {
        func failure(_ why: String) -> Failure {
            Failure(status: ExitStatus.usage, description: Table.printable("Error: '\(path)' \(why)"))
        }
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try File.readAtOnce(path, limit: 1 << 16)
        } catch {
            let why = String(cString: strerror(error.code))
            throw failure(
                "is no public key, which is 40 characters of Z85, and as a file with one it can't be read: \(why).")
        }
        guard let key = KeyFile.publicKey(in: String(decoding: bytes, as: UTF8.self)) else {
            throw failure("has no public key in it: 'camerabus keys new' prints one, on the other machine.")
        }
        return key
    }
}

extension KeysCommand {
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "Lists the keys that are let in.",
            discussion: "With --json: {\"keys\": [{\"name\", \"role\", \"key\"}]}.")

        @OptionGroup var keys: KeysFileArgument

        func run() async throws {
            let entries = try keys.read().entries
            if keys.json {
                let all = entries.map { entry -> JSONValue in
                    ["name": .string(entry.name), "role": .string(entry.role.rawValue), "key": .string(entry.key)]
                }
                return try Output.json(["keys": .array(all)])
            }
            guard !entries.isEmpty else { return Output.note("Nobody is let in: 'camerabus keys add' changes that.") }
            var table = Table("NAME", "ROLE", "KEY")
            for entry in entries { table.add(entry.name, entry.role.rawValue, entry.key) }
            try table.print()
        }
    }

    struct New: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "new", abstract: "Makes a pair of keys for this machine, and says what to type on the other.",
            discussion: """
                The file has both keys, and is for nobody else to read. Nothing is overwritten. With --json: {"name", "public", "file"}.
                """)

        @Argument(help: nameHelp)
        var name: String

        @Option(
            name: [.short, .customLong("output")],
            help: ArgumentHelp("Where to (default: NAME.key in this folder).", valueName: "file"), completion: .file())
        var output: String?

        @Flag(help: "Print JSON instead of sentences.")
        var json = false

        func validate() throws {
            try KeysFileArgument.validate(name: name)
            if output == nil, name.contains("/") { throw ValidationError("-o says where to: the name has a slash") }
        }

        func run() async throws {
            let path = output ?? "\(name).key"
            do {
                var pair = try CurveKeyPair.make()
                // It is going to be typed as an argument.
                while pair.publicKey.text.hasPrefix("-") { pair = try CurveKeyPair.make() }
                let (open, secret) = (pair.publicKey.text, pair.secretKey.text)
                let file = try NewFile(path, mode: 0o600)
                try file.write(Array(KeyFile.text(publicKey: open, secretKey: secret, name: name).utf8))
                try file.publish()
                if json {
                    return try Output.json(["name": .string(name), "public": .string(open), "file": .string(path)])
                }
                try Output.line(open)
                Output.note("Both keys are in \(path), which stays here. On the machine with the cameras:")
                Output.note("    sudo camerabus keys add \([name].shellCommand) '\(open)' --role control")
                Output.note("'--role view' lets it see and hear only, '--role admin' decide for others, too.")
            } catch let error as SystemError where error.isThereAlready {
                throw Failure(
                    status: ExitStatus.refused,
                    description: "\(Table.printable(path)) is there already, and stays as it is; -o names another file."
                )
            } catch let error as SystemError {
                throw Failure(status: ExitStatus.refused, description: "\(error)")
            } catch let error as ZeroMQError {
                throw Failure(status: ExitStatus.refused, description: "\(error)")
            }
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Lets a key in.",
            discussion: """
                The key is the public one, as 'keys new' and 'keys server' print it, or a file with it: with what these have printed, or with a \
                line 'public KEY', as a gateway's server.pub. Keys have characters that shells take for their own: \
                put them in single quotes. With --json: {"name", "role", "key"}.
                """)

        @OptionGroup var keys: KeysFileArgument

        @Argument(help: nameHelp)
        var name: String

        @Argument(help: ArgumentHelp("The public key, or a file with it.", valueName: "key"), completion: .file())
        var key: String

        @Option(help: ArgumentHelp("view, control or admin.", valueName: "role"))
        var role = RemoteRoleArgument(.view)

        func run() async throws {
            let text = RemoteCredential.key.isWellFormed(key) ? key : try KeysFileArgument.publicKey(in: key)
            try keys.change { all in
                do throws(RemoteUserList.Problem) {
                    try all.add(RemoteUserList.Entry(role: role.role, key: text, name: name))
                } catch {
                    throw Failure(status: ExitStatus.refused, description: Table.printable(error.description))
                }
            }
            if keys.json {
                try Output.json([
                    "name": .string(name), "role": .string(role.role.rawValue), "key": .string(text),
                ])
            }
        }
    }

    struct Server: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "server", abstract: "Prints the public key of this machine's gateway, which clients need.",
            discussion: "The gateway makes its keys when it is started for the first time, and logs the public one.")

        @Option(
            help: ArgumentHelp(
                "The file with it (default: /var/lib/camerabus-gateway/server.pub).", valueName: "file"),
            completion: .file())
        var file = "/var/lib/camerabus-gateway/server.pub"

        func run() async throws {
            let bytes: [UInt8]
            do throws(SystemError) {
                bytes = try File.readAtOnce(file, limit: 1 << 16)
            } catch {
                let hint =
                    error.isAbsent
                    ? " The gateway makes it at its first start with [tcp], beside its own keys (tcp.server_key): --file names it."
                    : ""
                throw Failure(status: ExitStatus.refused, description: "\(error).\(hint)")
            }
            guard let key = KeyFile.publicKey(in: String(decoding: bytes, as: UTF8.self)) else {
                throw Failure(
                    status: ExitStatus.refused, description: Table.printable("'\(file)' has no public key in it."))
            }
            try Output.line(key)
        }
    }
}
