import ArgumentParser

// The tree of commands names every command, and one command prints the tree: CompletionsCommand, by CompletionScript,
// needs this declaration. That circle is natural; all other commands know nothing of the tree.
struct Camerabus: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "camerabus",
        abstract:
            "Uses the cameras and microphones of a CameraBus: list, configure, lock, watch, record, and take photos.",
        discussion: """
            Results go to standard output. Everything else goes to standard error.

            EXIT STATUS:
              0  done
              1  the bus refused; the reason is printed as 'reason: message'. Also: a lock was lost
              2  wrong usage
              3  no bus: start one with 'camerabusd'. 'camerabus doctor' finds other causes, also between this machine \
            and the bus on another one
              4  timed out: no answer, no frame, or no lock in time
              128+N  ended by signal N
            'camerabus lock DEVICE -- COMMAND' ends with the status of COMMAND.

            EXAMPLES:
              camerabus devices
              camerabus frames cam0 jpeg:640x360@10 -n 5 -o 'f-%02d.jpg'
              camerabus photo cam0 -o a.jpg
              camerabus record cam0 --mic mic0 -o take.mp4
              camerabus lock cam0 -- sh -c 'camerabus format cam0 1280x720 --fps 30'
              camerabus watch state/device --json | jq -c '[.topic, .value.isStreaming]'
              camerabus who cam0

            ENVIRONMENT:
              CAMERABUS_RUNTIME_DIR  where the bus is: a directory, or tcp://HOST:PORT for another machine (instead of \
            --runtime-dir)
              CAMERABUS_SERVER_KEY   for another machine: the public key of its gateway, or a file that contains it
              CAMERABUS_KEY          for another machine: the file with your own keys, made by 'camerabus keys new'
              CAMERABUS_LOCK         the token of the lock to use (instead of --lock)
              CAMERABUS_KEYS         the file that 'camerabus keys' reads and changes (instead of --file)
              CAMERABUS_TOKENS       the file that 'camerabus tokens' reads and changes (instead of --file)
            """,
        version: ProgramVersion.text,
        subcommands: [
            StatusCommand.self, DevicesCommand.self, FormatsCommand.self, ControlsCommand.self, GetCommand.self,
            SetCommand.self, FormatCommand.self, LockCommand.self, LocksCommand.self, ProfilesCommand.self,
            RigsCommand.self, SessionsCommand.self, SessionCommand.self, FramesCommand.self, SoundCommand.self,
            LevelsCommand.self, PhotoCommand.self, RecordCommand.self, TakeCommand.self, MoviesCommand.self,
            LibraryCommand.self,
            FocusCommand.self, ExposeCommand.self, WhiteBalanceCommand.self, ResetCommand.self, ZoomCommand.self,
            NameCommand.self,
            WatchCommand.self, TopCommand.self, CallCommand.self, WhoCommand.self,
            AskCommand.self, AllowCommand.self, DenyCommand.self, PermissionsCommand.self, DoctorCommand.self,
            KeysCommand.self, TokensCommand.self, FaultCommand.self,
            CompletionsCommand.self,
        ])
}

extension Camerabus {
    /// Reads a command line.
    ///
    /// - Parameter arguments: without the program's name.
    /// - Throws: ``Failure`` with what to type instead, where that is known; else the parser's error.
    static func command(_ arguments: [String]) throws -> any ParsableCommand {
        let arguments = ArgumentCorrection.globalOptionsBehindCommand(arguments)
        let commands = configuration.subcommands.compactMap { $0.configuration.commandName }
        if let advice = ArgumentCorrection.unknownCommand(arguments, of: commands) {
            throw Failure(status: ExitStatus.usage, description: "Error: \(Table.printable(advice))")
        }
        do {
            return try parse(arguments)
        } catch {
            guard exitCode(for: error) != .success,
                let advice = ArgumentCorrection.advice(arguments) ?? unknownOption(arguments, error)
            else { throw error }
            throw Failure(status: ExitStatus.usage, description: "Error: \(advice)")
        }
    }

    // The parser reports unknown options last. It may first take the word after one for an argument, and report that
    // word instead.
    private static func unknownOption(_ arguments: [String], _ error: any Error) -> String? {
        guard !message(for: error).contains("Unknown option") else { return nil }
        var (command, names) = (self as any ParsableCommand.Type, [configuration.commandName ?? "camerabus"])
        for argument in arguments {
            if let next = command.configuration.subcommands.first(where: { $0._commandName == argument }) {
                (command, names) = (next, names + [argument])
            } else if let usual = command.configuration.defaultSubcommand {
                (command, names) = (usual, names + [usual._commandName])
            } else {
                break
            }
        }
        let help = helpMessage(for: command, includeHidden: true, columns: 1000)
        return ArgumentCorrection.unknownOption(arguments, of: names.joined(separator: " "), help: help)
    }

    private static func parse(_ arguments: [String]) throws -> any ParsableCommand {
        // The parser has no word for a list of arguments, then '--', then another list.
        guard arguments.first == LockCommand.configuration.commandName,
            let end = arguments.firstIndex(of: "--")
        else { return try parseAsRoot(arguments) }
        guard end + 1 < arguments.endIndex else {
            throw Failure(status: ExitStatus.usage, description: "Error: The command to run is missing after '--'.")
        }
        var command = try parseAsRoot(Array(arguments[..<end]))
        if var lock = command as? LockCommand {
            lock.command = Array(arguments[(end + 1)...])
            command = lock
        }
        return command
    }
}
