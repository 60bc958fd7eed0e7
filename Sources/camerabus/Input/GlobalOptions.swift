import ArgumentParser
import BusClient

/// The options of every command that connects to the bus.
struct GlobalOptions: ParsableArguments {
    @Flag(help: "Print the JSON that the bus returns, one value per line, instead of a table.")
    var json = false

    @Option(
        help: ArgumentHelp(
            """
            The directory of the bus's sockets, or tcp://HOST:PORT for a bus on another machine (see 'camerabus help \
            keys'). Default: $CAMERABUS_RUNTIME_DIR, else the first of $XDG_RUNTIME_DIR/camerabus, /run/camerabus and \
            /tmp/camerabus-UID where a bus answers.
            """, valueName: "directory"),
        completion: .directory)
    var runtimeDir: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How long to wait for the bus, in seconds.", valueName: "seconds"))
    var timeout: Seconds = 10

    func validate() throws {
        guard timeout.value > 0 else { throw ValidationError("--timeout takes a number of seconds greater than 0.") }
    }

    func connect() async throws(ClientError) -> Client {
        try await Client.connect(runtimeDirectory: runtimeDir, name: "camerabus", timeout: timeout.duration)
    }
}

/// A time as an argument: `10`, `0.5`.
struct Seconds: ExpressibleByArgument, ExpressibleByIntegerLiteral, Hashable {
    var value: Double

    init(integerLiteral value: Int) { self.value = Double(value) }

    /// - Returns: nil for a time that is negative, infinite or longer than a day. The bus accepts none of these.
    init?(argument: String) {
        guard let value = Double(argument), value >= 0, value <= 86400 else { return nil }
        self.value = value
    }

    var duration: Duration { .milliseconds(Int64((value * 1000).rounded(.up))) }
    var defaultValueDescription: String { value == value.rounded() ? String(Int(value)) : String(value) }
}

/// A command that talks to the bus.
protocol BusCommand: AsyncParsableCommand {
    var options: GlobalOptions { get }
    /// The command as ``ErrorText`` knows it: the first word that was typed.
    static var typedName: String { get }
    func run(_ client: Client) async throws
}

extension BusCommand {
    func run() async throws {
        let client = try await options.connect()
        try await run(client)
    }

    var timeout: Duration { options.timeout.duration }
    static var typedName: String { configuration.commandName ?? "" }
}

/// A command about a device.
protocol DeviceCommand: BusCommand {
    /// Its id.
    var device: String { get }
}

/// The help text of a device argument.
let deviceHelp: ArgumentHelp = "The device's id; 'camerabus devices' lists the ids."

/// Completes device ids by asking the bus.
let deviceCompletion = CompletionKind.shellCommand("camerabus devices --ids 2>/dev/null")

/// The same of microphones alone.
let microphoneCompletion = CompletionKind.shellCommand("camerabus devices --media audio --ids 2>/dev/null")
