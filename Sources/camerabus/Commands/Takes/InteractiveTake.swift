import ArgumentParser
import BusClient
import Glibc
import JSON
import LinuxIO
import Synchronization

/// The keys of an interactive take: one line each.
enum TakeKey: Hashable, Sendable {
    /// Starts or ends a segment.
    case toggle
    case deleteLast
    case finish
    case discard
    case unknown

    init(_ line: String) {
        switch line.filter({ !$0.isWhitespace }).lowercased() {
        case "": self = .toggle
        case "d": self = .deleteLast
        case "f": self = .finish
        case "x": self = .discard
        default: self = .unknown
        }
    }
}

/// A whole take, made at a terminal.
struct InteractiveTake {
    private let command: TakeCommand.Make
    private let client: Client
    private let target: String?
    private let display: TakeProgress

    static var hasTerminal: Bool { isatty(STDIN_FILENO) == 1 }

    static let help =
        "Enter starts and ends a segment. d deletes the last segment, x deletes all, f joins them (press Enter after "
        + "each letter)."

    /// Reads the command.
    ///
    /// - Throws: ``Failure`` when the file is there already.
    init(_ command: TakeCommand.Make, _ client: Client) throws {
        self.command = command
        self.client = client
        target = try command.place.path(command.wishes.device ?? "take")
        display = TakeProgress(asJSON: command.options.json)
    }

    func run() async throws {
        let take = try await client.createTake(
            try await command.wishes.params(client, command.timeout), timeout: command.timeout)
        PersistenceNote.note(isKept: take.isKept)
        do {
            try await make(take)
        } catch {
            display.clear()
            // Also when this task was cancelled.
            let (client, id) = (client, take.id)
            if let left = try? await Task(operation: { try await Self.leave(id, client) }).value {
                Output.note(Table.printable(Self.advice(left)))
            }
            throw error
        }
    }

    /// Ends the current segment. Deletes a take without segments.
    ///
    /// - Returns: the take; nil: it was deleted.
    private static func leave(_ id: String, _ client: Client) async throws -> TakeState? {
        if try await client.take(id).segment != nil { try await client.pauseTake(id) }
        let take = try await client.take(id)
        guard take.segments.isEmpty else { return take }
        try await client.discardTake(id)
        return nil
    }

    /// What the user can do with a take that is neither finished nor discarded.
    static func advice(_ take: TakeState) -> String {
        let what = take.segments.count == 1 ? "one segment" : "\(take.segments.count) segments"
        return "The take \(take.id) is kept, with \(what). 'camerabus take finish \(take.id)' joins them; "
            + "'camerabus take discard \(take.id)' deletes it."
    }

    private func make(_ take: TakeState) async throws {
        let updates = try await client.updates(ofTake: take.id, timeout: command.timeout)
        if command.options.json { try Output.json(["take": take.json]) } else { Output.note(Self.help) }
        // More than 16 waiting keys are dropped.
        let keys = AsyncStream.makeStream(of: TakeKey.self, bufferingPolicy: .bufferingOldest(16))
        let (isInterrupted, isOver, isJoining) = (OneTimeEvent(), OneTimeEvent(), OneTimeEvent())
        let display = display
        // This thread reads keys until the program ends.
        _ = try NamedThread(name: "keys") { Self.read(keys.continuation) }
        try await Signals.handled { signal, _ in
            guard !isInterrupted.isSet else {
                if isJoining.isSet { display.note(TakeJoin.goesOn(take.id)) }
                AtomicFile.abandon(exiting: 128 + signal)
            }
            isInterrupted.set()
            keys.continuation.finish()
        } _: {
            try await BusLossNotice.run(
                client, patience: command.timeout,
                "The take may continue. It is kept until the bus is back. Press Ctrl-C twice to stop waiting."
            ) {
                display.note($0)
            } _: {
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    group.addTask {
                        while let update = try await updates.next() { try display.show(update, of: take.id) }
                        isOver.set()
                        keys.continuation.finish()
                        return false
                    }
                    group.addTask {
                        try await serve(keys.stream, take.id, isInterrupted, isOver, isJoining)
                        return true
                    }
                    while let isServed = try await group.next(), !isServed {}
                    group.cancelAll()
                }
            }
        }
        display.clear()
    }

    // Keeps 256 bytes of a line: no key is longer.
    private static func read(_ keys: AsyncStream<TakeKey>.Continuation) {
        var line: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 256)
        while true {
            let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            for byte in bytes.prefix(count) {
                if byte == UInt8(ascii: "\n") {
                    keys.yield(TakeKey(String(decoding: line, as: UTF8.self)))
                    line = []
                } else if line.count < 256 {
                    line.append(byte)
                }
            }
        }
        keys.finish()
    }

    /// Carries out the keys until the take ends.
    private func serve(
        _ keys: AsyncStream<TakeKey>, _ id: String, _ isInterrupted: OneTimeEvent, _ isOver: OneTimeEvent,
        _ isJoining: OneTimeEvent
    ) async throws {
        for await key in keys where !isInterrupted.isSet {
            do {
                switch key {
                case .toggle: try await toggle(id)
                case .deleteLast: try await deleteLast(id)
                case .finish: if try await finish(id, isJoining) { return }
                case .discard: return try await discard(id)
                case .unknown: display.note(Self.help)
                }
            } catch ClientError.refused(let refusal) {
                display.note(ErrorText(command: "take").text(.refused(refusal)))
            }
        }
        if isOver.isSet { return display.note("The take has ended: another program finished or discarded it.") }
        // Nothing more can be typed.
        if try await !finish(id, isJoining) { try await discard(id) }
    }

    private func toggle(_ id: String) async throws {
        if display.isRecording {
            // Its end arrives as an event.
            try await client.pauseTake(id, timeout: patience)
            display.isRecording = false
        } else {
            _ = try await client.recordTake(id, timeout: patience)
            display.isRecording = true
        }
    }

    private func deleteLast(_ id: String) async throws {
        if display.isRecording { return display.note("A segment is being recorded. Press Enter to end it first.") }
        guard let last = try await client.take(id, timeout: command.timeout).segments.last else {
            return display.note("There is no segment.")
        }
        try await client.deleteSegment(last.id, ofTake: id, timeout: command.timeout)
    }

    /// - Returns: false: there is nothing to be joined.
    private func finish(_ id: String, _ isJoining: OneTimeEvent) async throws -> Bool {
        if display.isRecording { try await toggle(id) }
        guard try await !client.take(id, timeout: command.timeout).segments.isEmpty else {
            display.note("There is no segment.")
            return false
        }
        let finishing = TakeJoin(client: client, patience: max(command.timeout, Client.finishingTimeout))
        isJoining.set()
        let finished = try await finishing.finish(id, to: target, replaces: command.place.force)
        display.clear()
        try TakeText.tell(finished, asJSON: command.options.json)
        return true
    }

    private func discard(_ id: String) async throws {
        let (deleted, isKept) = try await client.discardTake(id, timeout: patience)
        if command.options.json {
            try Output.json(
                .members(["take": .string(id), "deleted": JSONValue(deleted), "kept": isKept ? nil : false]))
        }
        PersistenceNote.note(isKept: isKept)
        display.note("The take is deleted.")
    }

    // A camera may take its time to give its first picture.
    private var patience: Duration { max(command.timeout, Client.movieTimeout) }
}

/// The progress of a take: one line of the terminal, or one line of JSON per update.
final class TakeProgress: Sendable {
    private struct State {
        var isRecording = false
        var isShown = false
    }

    private let state = Mutex(State())
    private let asJSON: Bool
    private let isTerminal = isatty(STDERR_FILENO) == 1

    init(asJSON: Bool) { self.asJSON = asJSON }

    /// Whether a segment is recorded, as far as it is known.
    var isRecording: Bool {
        get { state.withLock(\.isRecording) }
        set { state.withLock { $0.isRecording = newValue } }
    }

    func show(_ update: TakeUpdates.Update, of id: String) throws {
        switch update {
        case .state(let take):
            if asJSON { try Output.json(["take": .string(id), "state": take.json]) }
            isRecording = take.state == "recording"
            progress(TakeText.progress(take))
        case .event(let name, let json):
            if asJSON { try tell(name, json, id) }
            if name == "exportProgress" { progress(TakeText.joining(json["progress"]?.double ?? 0)) }
            if !asJSON, let remark = TakeText.remark(name, json) { note(remark) }
        case .over: break
        }
    }

    /// A sentence, above the progress.
    func note(_ text: String) {
        clear()
        Output.note(Table.printable(text))
    }

    /// Leaves an empty line where the progress stood.
    func clear() {
        state.withLock { state in
            if state.isShown { Output.progress("") }
            state.isShown = false
        }
    }

    private func progress(_ text: String) {
        guard isTerminal, !asJSON else { return }
        state.withLock { state in
            Output.progress(String(Table.printable(text).prefix(HelpText.columns - 1)))
            state.isShown = true
        }
    }

    private func tell(_ event: String, _ json: JSONValue, _ id: String) throws {
        var members = json.object ?? [:]
        for name in ["epoch", "sequence", "previous"] { members[name] = nil }
        members["event"] = .string(event)
        members["take"] = .string(id)
        try Output.json(.object(members))
    }
}
