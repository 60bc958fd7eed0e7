import ArgumentParser
import BusProtocol
import Glibc
import JSON
import LinuxIO
import ZeroMQ

struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "Manages which other machines may use the cameras here, by their keys.",
        discussion: """
            Clients on other machines connect through camerabus-gateway, encrypted. Each client has a pair of keys. \
            The secret key stays where it was made. The public key is added here, with a role: view allows to see and \
            hear; control also to lock, change and record; admin allows everything. The gateway watches the file: a \
            revoked client loses its access within a second.

            Run 'keys new' on the other machine to make a pair. Run 'keys add' here to allow it. 'keys server' prints \
            the public key of this machine, which the client needs to verify it. Set \
            CAMERABUS_RUNTIME_DIR=tcp://HOST:7350, CAMERABUS_SERVER_KEY and CAMERABUS_KEY (the file with the client's \
            own keys) on the other machine. Then 'camerabus' works there as it does here, except for commands that \
            need the same machine.

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

    static let nameHelp: ArgumentHelp = "The name of the key; others see it as the holder of locks."
}

/// The keys file of a gateway, as an argument.
struct KeysFileArgument: RemoteUserFile {
    @Flag(help: "Print JSON instead of a table.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "The keys file of the gateway (default: $CAMERABUS_KEYS, else /etc/camerabus/keys).", valueName: "file"),
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
                "is not a public key (40 characters of Z85), and can't be read as a file with one: \(why).")
        }
        guard let key = KeyFile.publicKey(in: String(decoding: bytes, as: UTF8.self)) else {
            throw failure("contains no public key. Run 'camerabus keys new' on the other machine to print one.")
        }
        return key
    }
}

extension KeysCommand {
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "Lists the allowed keys.",
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
            guard !entries.isEmpty else {
                return Output.note("No keys are allowed yet. Add one with 'camerabus keys add'.")
            }
            var table = Table("NAME", "ROLE", "KEY")
            for entry in entries { table.add(entry.name, entry.role.rawValue, entry.key) }
            try table.print()
        }
    }

    struct New: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "new",
            abstract: "Makes a pair of keys for this machine, and prints the command for the other machine.",
            discussion: """
                The file contains both keys; only you can read it. An existing file is not replaced. With --json: \
                {"name", "public", "file"}.
                """)

        @Argument(help: nameHelp)
        var name: String

        @Option(
            name: [.short, .customLong("output")],
            help: ArgumentHelp("The file to write (default: NAME.key in this folder).", valueName: "file"),
            completion: .file())
        var output: String?

        @Flag(help: "Print JSON instead of text.")
        var json = false

        func validate() throws {
            try KeysFileArgument.validate(name: name)
            if output == nil, name.contains("/") {
                throw ValidationError("The name contains a slash. Use -o to name the file.")
            }
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
                Output.note("Both keys are in \(path). Keep this file here. Run on the machine with the cameras:")
                Output.note("    sudo camerabus keys add \([name].shellCommand) '\(open)' --role control")
                Output.note(
                    "'--role view' allows only to see and hear; '--role admin' also allows to decide for others.")
            } catch let error as SystemError where error.isThereAlready {
                throw Failure(
                    status: ExitStatus.refused,
                    description:
                        "\(Table.printable(path)) exists already and was not changed. Use -o to name another file."
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
            commandName: "add", abstract: "Allows a key.",
            discussion: """
                KEY is the public key that 'keys new' or 'keys server' printed, or a file with that output or with a \
                line 'public KEY', such as a gateway's server.pub. Keys contain characters that shells interpret: put \
                them in single quotes. With --json: {"name", "role", "key"}.
                """)

        @OptionGroup var keys: KeysFileArgument

        @Argument(help: nameHelp)
        var name: String

        @Argument(
            help: ArgumentHelp("The public key, or a file that contains it.", valueName: "key"), completion: .file())
        var key: String

        @Option(help: ArgumentHelp("The role: view, control or admin.", valueName: "role"))
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
                "The file that contains it (default: /var/lib/camerabus-gateway/server.pub).", valueName: "file"),
            completion: .file())
        var file = "/var/lib/camerabus-gateway/server.pub"

        func run() async throws {
            let bytes: [UInt8]
            do throws(SystemError) {
                bytes = try File.readAtOnce(file, limit: 1 << 16)
            } catch {
                let hint =
                    error.isAbsent
                    ? " The gateway makes this file at its first start with [tcp], next to its own keys "
                        + "(tcp.server_key). "
                        + "If it is elsewhere, name it with --file."
                    : ""
                throw Failure(status: ExitStatus.refused, description: "\(error).\(hint)")
            }
            guard let key = KeyFile.publicKey(in: String(decoding: bytes, as: UTF8.self)) else {
                throw Failure(
                    status: ExitStatus.refused, description: Table.printable("'\(file)' contains no public key."))
            }
            try Output.line(key)
        }
    }
}
