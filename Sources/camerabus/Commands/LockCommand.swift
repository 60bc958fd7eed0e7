import ArgumentParser
import BusClient
import BusProtocol
import Glibc
import JSON
import LinuxIO

struct LockCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "lock", abstract: "Locks devices for configuration while a command runs, or until Ctrl-C.",
        usage: "camerabus lock [<options>] <device> ... [-- <command> ...]",
        discussion: """
            All of the devices are locked, or none; 64 at most, and 64 may wait for one. The command finds the lock in $CAMERABUS_LOCK, which all clients read, and the bus in \
            $CAMERABUS_RUNTIME_DIR. SIGINT, SIGTERM and SIGHUP are handed on to it, and the exit status is the command's: 128 + N when signal N ended it, \
            126 or 127 when it can't be started.

            The lock outlives a crash of the bus: whoever holds it still has it from the next one.

            Without a command the lock's token is printed (with --json: {"lock": …, "fence": …, "devices": […]}), and the lock held until \
            Ctrl-C or SIGTERM, which is status 0, or until it is lost, which is status 1.

            EXAMPLES:
              camerabus lock cam0 -- sh -c 'camerabus format cam0 1280x720 --fps 30'
              camerabus lock left right --wait 5 -- ./calibrate.py
              camerabus lock cam0 --take-over
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var devices: [String]

    @Option(
        help: ArgumentHelp("Stand in the queue for so many seconds when another has a device.", valueName: "seconds"))
    var wait: Seconds = 0

    @Flag(help: "Take the devices from whoever has them locked; for administrators.")
    var takeOver = false

    @Option(
        help: ArgumentHelp("What for; all can read it in 'camerabus locks' (default: the command).", valueName: "text"))
    var note: String?

    /// What to run, with its arguments: what is behind `--`, put in by ``Camerabus/command(_:)``.
    var command: [String] = []

    enum CodingKeys: CodingKey {
        case options, devices, wait, takeOver, note
    }

    func validate() throws {
        if takeOver, wait.duration > .zero { throw ValidationError("--take-over does not wait; leave --wait out") }
    }

    func run(_ client: Client) async throws {
        let note = note ?? (command.isEmpty ? nil : String(command.joined(separator: " ").prefix(128)))
        let status = try await client.withLock(
            devices, wait: wait.duration, note: note, takingOver: takeOver, timeout: timeout
        ) { lock in
            let keeper = LockKeeper(client, lock)
            return try await command.isEmpty ? hold(lock, keeper) : runCommand(lock, keeper, client)
        }
        if status != ExitStatus.done { throw ExitCode(status) }
    }

    private func hold(_ lock: DeviceLock, _ keeper: LockKeeper) async throws -> Int32 {
        let (signals, continuation) = AsyncStream.makeStream(of: Int32.self)
        let stop: Signals.Handler = { signal, _ in continuation.yield(signal) }
        return try await Signals.handled(by: stop) {
            try tell(lock)
            return try await withThrowingTaskGroup(of: Int32.self) { group in
                group.addTask {
                    for await _ in signals { break }
                    return ExitStatus.done
                }
                group.addTask { throw try await keeper.loss() }
                defer { group.cancelAll() }
                return try await group.next() ?? ExitStatus.done
            }
        }
    }

    private func tell(_ lock: DeviceLock) throws {
        if options.json {
            return try Output.json([
                "lock": .string(lock.token), "fence": .integer(lock.fence), "devices": JSONValue(lock.devices),
            ])
        }
        try Output.line(lock.token)
        Output.note("Locked: \(lock.devices.joined(separator: ", ")). Ctrl-C unlocks.")
    }

    private func runCommand(_ lock: DeviceLock, _ keeper: LockKeeper, _ client: Client) async throws -> Int32 {
        setenv("CAMERABUS_LOCK", lock.token, 1)
        setenv("CAMERABUS_RUNTIME_DIR", client.directory.path, 1)
        let relay = SignalRelay()
        return try await Signals.handled(by: relay.take) {
            let child: ChildProcess
            do throws(SystemError) {
                child = try relay.start { () throws(SystemError) in
                    try ChildProcess(
                        program: command[0], arguments: Array(command.dropFirst()), searchesPath: true,
                        standardInput: 0)
                }
            } catch {
                let status = error.code == ENOENT ? ExitStatus.commandNotFound : ExitStatus.cannotExecute
                throw Failure(status: status, description: "\(command[0]): \(String(cString: strerror(error.code)))")
            }
            let warning = Task {
                if let loss = try? await keeper.loss() { Output.note("\(loss)") }
            }
            defer { warning.cancel() }
            switch try await child.ended() {
            case .exited(let status): return status
            case .signalled(let signal): return 128 + signal
            }
        }
    }
}

extension ChildProcess {
    /// How it ended, once it has.
    fileprivate func ended() async throws(SystemError) -> Ending {
        let result: Result<Ending, SystemError> = await withCheckedContinuation { continuation in
            do throws(SystemError) {
                _ = try NamedThread(name: "wait-for-child") {
                    var item = pollfd(fd: process.rawValue, events: Int16(POLLIN), revents: 0)
                    while poll(&item, 1, -1) == -1, errno == EINTR {}
                    continuation.resume(returning: .success(reap() ?? .exited(ExitStatus.refused)))
                }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        return try result.get()
    }
}
