public import BusProtocol
public import JSON

/// Why a session that is wanted can't run now, and because of whom.
public struct SessionInterruption: Hashable, Sendable {
    public var reason: InterruptionReason
    /// Which input it is about; nil: all of them.
    public var device: String?
    /// Who has it: {session?, lock?, holder}, or the programs; null where nobody can be named.
    public var by: JSONValue
    /// What is in the way, for people, without a full stop.
    public var cause: String
    /// When the session continues.
    public var end: String

    /// - Parameter end: `that is over`.
    public init(
        _ reason: InterruptionReason, device: String?, by: JSONValue = .null, cause: String,
        until end: String = "that is over"
    ) {
        self.reason = reason
        self.device = device
        self.by = by
        self.cause = cause
        self.end = end
    }

    /// One sentence for people.
    public var message: String { "\(cause); the session continues by itself when \(end)." }

    /// {reason, device, by, message}
    public var json: JSONValue {
        [
            "reason": .string(reason.rawValue), "device": device.map(JSONValue.string) ?? .null, "by": by,
            "message": .string(message),
        ]
    }
}

/// Whether a session runs: a value that is told what happens and answers what to tell.
///
/// ```
/// stopped → starting → running ⇄ interrupted
///    ↑       ↓↑ └─────────┴──────────┤
///    │  waitingForAuthorization      │
///    └──────────┴────────────────────┘
/// ```
/// A start is remembered over interruptions until a stop, or an error that doesn't pass.
public struct SessionRun: Hashable, Sendable {
    public enum State: String, Hashable, Sendable, CaseIterable {
        case stopped
        /// Wanted; its devices are being looked at, or set.
        case starting
        case running, interrupted
        /// Wanted; its user may not have its devices, or not yet. Nothing is done for it.
        case waitingForAuthorization
    }

    public enum Event: Hashable, Sendable {
        case didStartRunning, didStopRunning, interruptionEnded
        case wasInterrupted(SessionInterruption)
        case runtimeError(BusError)
    }

    public private(set) var state: State
    public private(set) var interruption: SessionInterruption?
    /// `didStartRunning` was told, and no `didStopRunning` since.
    public private(set) var hasStarted: Bool

    public init() {
        state = .stopped
        hasStarted = false
    }

    /// As another coordinator has left it: what kept it from running then is found out anew.
    public init(isWanted: Bool, hasStarted: Bool) {
        state = isWanted ? .starting : .stopped
        self.hasStarted = isWanted && hasStarted
    }

    /// Somebody has started it, and nobody stopped it.
    public var isWanted: Bool { state != .stopped }

    /// It is wanted, and its devices are to be opened and set for it.
    public var isActive: Bool { isWanted && state != .waitingForAuthorization }

    /// - Returns: false: it was started already.
    public mutating func start() -> Bool {
        guard !isWanted else { return false }
        state = .starting
        return true
    }

    /// What it tells is told when the state says so.
    public mutating func stop() -> [Event] {
        guard isWanted else { return [] }
        defer { self = SessionRun() }
        return hasStarted ? [.didStopRunning] : []
    }

    /// Its user may not have its devices.
    ///
    /// - Returns: false: it waited for that already, or is not wanted.
    public mutating func waitForAuthorization() -> Bool {
        guard isWanted, state != .waitingForAuthorization else { return false }
        state = .waitingForAuthorization
        interruption = nil
        return true
    }

    /// Its user may have its devices now.
    ///
    /// - Returns: false: it did not wait for that.
    public mutating func authorized() -> Bool {
        guard state == .waitingForAuthorization else { return false }
        state = .starting
        return true
    }

    /// Everything that it needs is there.
    public mutating func serve() -> [Event] {
        guard isWanted, state != .running, state != .waitingForAuthorization else { return [] }
        var events: [Event] = state == .interrupted ? [.interruptionEnded] : []
        if !hasStarted { events.append(.didStartRunning) }
        state = .running
        interruption = nil
        hasStarted = true
        return events
    }

    /// Something that it needs it can't have for now. The same once more tells nothing.
    public mutating func interrupt(_ cause: SessionInterruption) -> [Event] {
        guard isWanted, state != .waitingForAuthorization, interruption != cause else { return [] }
        // Another sentence, or another who has it, is no new interruption.
        let isNew = interruption?.reason != cause.reason || interruption?.device != cause.device
        state = .interrupted
        interruption = cause
        return isNew ? [.wasInterrupted(cause)] : []
    }

    /// Something has gone wrong. Without a stop it goes on by itself when that has passed.
    public mutating func fail(_ error: BusError, stops: Bool) -> [Event] {
        guard isWanted else { return [] }
        if stops { return [.runtimeError(error)] + stop() }
        if state == .running { state = .starting }
        return [.runtimeError(error)]
    }
}

extension SessionRun.Event {
    /// AVFoundation's name, as `event/session/<id>/` has it.
    public var name: String {
        switch self {
        case .didStartRunning: "didStartRunning"
        case .didStopRunning: "didStopRunning"
        case .interruptionEnded: "interruptionEnded"
        case .wasInterrupted: "wasInterrupted"
        case .runtimeError: "runtimeError"
        }
    }

    /// What the event holds beside its name.
    public var members: [String: JSONValue] {
        switch self {
        case .didStartRunning, .didStopRunning, .interruptionEnded: [:]
        case .wasInterrupted(let interruption): interruption.json.object ?? [:]
        case .runtimeError(let error):
            [
                "error": .object(
                    error.data.merging(["reason": .string(error.reason.rawValue), "message": .string(error.message)]) {
                        _, own in own
                    })
            ]
        }
    }
}
