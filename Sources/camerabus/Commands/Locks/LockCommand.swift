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
            A lock gives one client the right to change devices; other clients can still read frames. Either all of \
            the devices are locked, or none.

              With a command       the lock is held while the command runs
              Without a command    the token is printed, and the lock is held until Ctrl-C
              --lease alone        the token is printed, this program exits, and the lock ends after that time
              --lease and command  the lock ends after that time or with the command, whichever is first

            The command gets the token in $CAMERABUS_LOCK, which all camerabus commands use, and the bus in \
            $CAMERABUS_RUNTIME_DIR. 'camerabus call device.renew' restarts a lease; 'camerabus call device.unlock' \
            ends a lock early.

            A lock without a lease ends with this program, also if it crashes. From another machine it ends at most \
            ten seconds after the connection is cut. It survives a crash of the bus: the next bus gives it back to \
            the same holder. If it is lost (taken over, or the bus was shut down), this is reported at once, and the \
            command continues.

            Exit status with a command: that of the command; 128 + N if signal N ended it; 126 or 127 if it can't be \
            started; if it ends with 0 and the lock was lost, 1, or 3 without a bus. Without a command: 0 after \
            Ctrl-C or SIGTERM, 1 if the lock was lost. SIGINT, SIGTERM and SIGHUP are passed on to the command. With \
            --json the token is printed as {"lock": …, "fence": …, "devices": […]}.

            64 devices at most; 64 clients may wait for one device.

            EXAMPLES:
              camerabus lock cam0 -- sh -c 'camerabus format cam0 1280x720 --fps 30'
              camerabus lock left right --wait 5 -- ./calibrate.py
              camerabus lock cam0 --take-over
              export CAMERABUS_LOCK=$(camerabus lock cam0 --lease 60)
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: deviceHelp, completion: deviceCompletion)
    var devices: [String]

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "If another client has locked a device, wait this many seconds in the queue.", valueName: "seconds"))
    var wait: Seconds = 0

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "End the lock after this many seconds unless it is renewed (default: when this program ends).",
            valueName: "seconds"))
    var lease: Seconds?

    @Flag(help: "Take the devices from the client that has locked them; only for administrators.")
    var takeOver = false

    @Option(
        help: ArgumentHelp(
            "The purpose, shown to everybody by 'camerabus locks' (default: the command).", valueName: "text"))
    var note: String?

    /// What to run, with its arguments: what is behind `--`, put in by ``Camerabus/command(_:)``.
    var command: [String] = []

    enum CodingKeys: CodingKey {
        case options, devices, wait, lease, takeOver, note
    }

    func validate() throws {
        if takeOver, wait.duration > .zero { throw ValidationError("--take-over does not wait. Leave --wait out.") }
        if let lease, lease.value < 0.1 { throw ValidationError("--lease takes a number of seconds, 0.1 or more.") }
    }

    func run(_ client: Client) async throws {
        let lock = try await take(client)
        let monitor = LockLossMonitor(client, lock, patience: timeout)
        if command.isEmpty {
            // A lock with a lease needs no process that holds it.
            if lease != nil { return try tell(lock) }
            let outcome = await Outcome { try await hold(lock, monitor) }
            _ = await release(lock, client)
            return try outcome.get()
        }
        let watch = Task { try await monitor.loss() }
        defer { watch.cancel() }
        let (commandHasEnded, lossIsTold) = (OneTimeEvent(), OneTimeEvent())
        // A loss while the command runs is reported at once. Later the answer to the release shows whether there was
        // one.
        let telling = Task {
            guard let loss = try? await watch.value, !loss.isWanted, !commandHasEnded.isSet else { return false }
            Output.note("lockLost: \(loss.description)")
            lossIsTold.set()
            return true
        }
        let outcome = await Outcome { try await runCommand(lock, client) }
        commandHasEnded.set()
        let refusal = await release(lock, client)
        let status = try outcome.get()
        let end: Int32
        switch refusal {
        case nil: end = ExitStatus.done
        case .refused(let error)? where error.reason == .lockLost:
            // The cause arrives at about the same time. A bus that was restarted may not know it.
            let loss = await Self.value(of: watch, within: .seconds(2))
            if loss?.isWanted == true {
                end = ExitStatus.done
            } else {
                if loss == nil {
                    Output.note("lockLost: The lock had ended before the command did.")
                } else if await !telling.value, let loss {
                    Output.note("lockLost: \(loss.description)")
                }
                Output.note(Self.doubt(devices))
                end = ExitStatus.refused
            }
        case let error?:
            let isGone = [ExitStatus.noBus, ExitStatus.timedOut].contains(ExitStatus.of(error))
            var why = ErrorText(command: "lock").text(error)
            if case .unreachable = error {} else if isGone { why = "The bus does not answer any more." }
            let doubt =
                lossIsTold.isSet
                ? Self.doubt(devices) : "It is unknown whether the command had the lock until its end."
            Output.note("\(why) \(doubt)")
            end = isGone ? ExitStatus.noBus : ExitStatus.of(error)
        }
        // The status of the command comes first.
        if status != ExitStatus.done { throw ExitCode(status) }
        if end != ExitStatus.done {
            Output.note("The command ended with status 0; 'camerabus lock' ends with \(end) because of the lock.")
            throw ExitCode(end)
        }
    }

    private static func doubt(_ devices: [String]) -> String {
        "\(devices.joined(separator: ", ")): another client may have held the lock while the command ran."
    }

    private func take(_ client: Client) async throws -> DeviceLock {
        let note = note ?? (command.isEmpty ? nil : String(command.joined(separator: " ").prefix(128)))
        do throws(ClientError) {
            if takeOver {
                return try await client.takeOver(devices, lease: lease?.duration, note: note, timeout: timeout)
            }
            return try await client.lock(
                devices, wait: wait.duration, lease: lease?.duration, note: note, timeout: timeout)
        } catch {
            // The command was taken for a device.
            guard error.reason == .deviceNotFound, command.isEmpty, !options.json,
                case .refused(let refusal) = error, let stranger = refusal.data["device"]?.string,
                let advice = devices.firstIndex(of: stranger).flatMap({
                    ArgumentCorrection.dashes(devices, commandAt: $0)
                })
            else { throw error }
            let text = "\(ErrorText(command: "lock").text(error))\n\(advice)"
            throw Failure(status: ExitStatus.of(error), description: text)
        }
    }

    /// - Returns: why it could not be released: it had ended, or the bus does not answer.
    private func release(_ lock: DeviceLock, _ client: Client) async -> ClientError? {
        // A cancelled task must release its lock too: another task does it.
        await Task { () -> ClientError? in
            do throws(ClientError) {
                PersistenceNote.note(isKept: try await client.unlock(lock, timeout: timeout))
                return nil
            } catch {
                return error
            }
        }.value
    }

    private static func value<Value: Sendable>(of task: Task<Value, any Error>, within limit: Duration) async -> Value?
    {
        await withTaskGroup(of: Value?.self) { group in
            group.addTask {
                try? await withTaskCancellationHandler {
                    try await task.value
                } onCancel: {
                    task.cancel()
                }
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    private func hold(_ lock: DeviceLock, _ monitor: LockLossMonitor) async throws {
        let (signals, continuation) = AsyncStream.makeStream(of: Int32.self)
        let stop: Signals.Handler = { signal, _ in continuation.yield(signal) }
        try await Signals.handled(by: stop) {
            try tell(lock)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { for await _ in signals { break } }
                group.addTask {
                    let loss = try await monitor.loss()
                    throw Failure(status: ExitStatus.refused, description: "lockLost: \(loss.description)")
                }
                defer { group.cancelAll() }
                try await group.next()
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
        let devices = lock.devices.joined(separator: ", ")
        guard let lease else { return Output.note("Locked: \(devices). Press Ctrl-C to unlock.") }
        let renewing = "camerabus call device.renew '{\"lock\": \"\(lock.token)\"}'"
        Output.note("Locked for \(ValueText.rate(lease.value)) s: \(devices). To renew: \(renewing)")
    }

    private func runCommand(_ lock: DeviceLock, _ client: Client) async throws -> Int32 {
        setenv("CAMERABUS_LOCK", lock.token, 1)
        setenv("CAMERABUS_RUNTIME_DIR", client.place.name, 1)
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
            switch try await child.ended() {
            case .exited(let status): return status
            case .signalled(let signal): return 128 + signal
            }
        }
    }
}

/// The result of a throwing call.
private typealias Outcome<Value> = Result<Value, any Error>

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

extension ChildProcess {
    /// Waits for its end.
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
