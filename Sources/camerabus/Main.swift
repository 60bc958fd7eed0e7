import ArgumentParser
import BusClient
import BusProtocol
import Glibc
import JSON

/// Parses the command line, runs the command, and returns its exit status.
@main
enum Main {
    static func main() {
        // write() returns an error for a closed pipe. So the connection is closed in order.
        signal(SIGPIPE, SIG_IGN)
        Signals.block()
        let work = Task.detached { exit(await run(Array(CommandLine.arguments.dropFirst()))) }
        // This thread is left to the signals: Swift's own main loop would unblock them here.
        Signals.serve(interrupting: work.cancel)
    }

    /// - Parameter arguments: without the program's name.
    /// - Returns: the exit status.
    static func run(_ arguments: [String]) async -> Int32 {
        if BusCompletion.isAsked(arguments) { await BusCompletion.prepare(arguments) }
        var command: any ParsableCommand
        do {
            command = try Camerabus.command(arguments)
        } catch {
            return report(parsing: error)
        }
        do {
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return ExitStatus.done
        } catch {
            // The parser's own commands, which print help and version, speak by errors.
            guard command is any AsyncParsableCommand else { return report(parsing: error) }
            return report(error, of: command)
        }
    }

    private static func report(parsing error: any Error) -> Int32 {
        if let failure = error as? Failure {
            Output.note(failure.description)
            return failure.status
        }
        guard Camerabus.exitCode(for: error) == .success else {
            Output.note(Camerabus.fullMessage(for: error))
            return ExitStatus.usage
        }
        // The parser breaks lines anywhere, also in examples that are copied.
        var text = Camerabus.fullMessage(for: error, columns: 1_000_000)
        if text.hasPrefix("OVERVIEW: ") || text.hasPrefix("USAGE: ") {
            text = HelpText.wrapped(text, columns: HelpText.columns)
        }
        // Help, version and completion scripts were asked for: they are results.
        do { try Output.line(text) } catch { return ExitStatus.of(error) }
        return ExitStatus.done
    }

    private static func report(_ error: any Error, of command: any ParsableCommand) -> Int32 {
        let asJSON = (command as? any BusCommand)?.options.json ?? false
        if let signal = Signals.interruption { return 128 + signal }
        let status = ExitStatus.of(error)
        switch error {
        case let error as ExitCode: return error.rawValue
        case is CleanExit, is ValidationError: return report(parsing: error)
        case is OutputClosed: break
        case ClientError.refused(let refusal) where asJSON: Output.note(refusal.json.description.escapedInJSON)
        case let error as ClientError:
            let name =
                (type(of: command) as? any BusCommand.Type)?.typedName
                ?? type(of: command).configuration.commandName ?? ""
            let device = (command as? any DeviceCommand)?.device
            Output.note(Table.printable(ErrorText(command: name, device: device).text(error)))
        default: Output.note("\(error)")
        }
        return status
    }
}
