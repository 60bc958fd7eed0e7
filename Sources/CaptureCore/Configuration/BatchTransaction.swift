public import BusProtocol
public import JSON

/// One change across several devices: all prepare (check, and touch nothing), then all apply, or none is left changed.
///
/// The caller does what it is told, on all devices at the same time, and says what came of it. A device answers for
/// itself: one whose apply fails puts back what it had set so far, and says if it couldn't. A device that is lost
/// answers no more, whatever it sends later; if it may have applied by then, it counts as not rolled back.
public struct BatchTransaction: Sendable {
    public enum Action: Hashable, Sendable {
        /// Ask the device to check its change.
        case prepare(String)
        /// Ask it to make the change.
        case apply(String)
        /// Ask it to put back what was before it applied.
        case rollBack(String)
        /// All of several devices have applied. Keep for good that this is to stay, and say so with ``decided(_:)``:
        /// from then on a caller that dies leaves a change that its successor completes.
        case decide
        /// It is over; nothing more comes.
        case finish(Outcome)
    }

    public enum Outcome: Hashable, Sendable {
        /// What each device answered: to apply, or to prepare if this was a dry run.
        case success([String: JSONValue])
        /// The first failure and whose it was; which devices had applied and are as before again, and which may not be.
        case failure(BusError, device: String, rolledBack: [String], notRolledBack: [String])

        /// The failure as an error for the client: its data says besides {device, rolledBack, notRolledBack}.
        public var error: BusError? {
            guard case .failure(var error, let device, let rolledBack, let notRolledBack) = self else { return nil }
            let members: [String: JSONValue] = [
                "device": .string(device), "rolledBack": JSONValue(rolledBack),
                "notRolledBack": JSONValue(notRolledBack),
            ]
            error.data.merge(members) { _, new in new }
            if !notRolledBack.isEmpty {
                let names = notRolledBack.joined(separator: ", ")
                error.message += " What was set before could not be put back on \(names)."
            }
            return error
        }
    }

    private enum State: Sendable {
        case waiting
        case preparing
        case prepared(JSONValue)
        case applying
        case applied(JSONValue)
        /// Its apply failed, and it is as before.
        case undone
        case rollingBack
        case rolledBack
        case notRolledBack
    }

    private enum Decision: Sendable { case open, asked, made }

    private let devices: [String]
    private let dryRun: Bool
    private var states: [String: State]
    private var failure: (error: BusError, device: String)?
    private var decision = Decision.open
    public private(set) var isFinished = false

    /// - Parameter dryRun: ends when all have prepared.
    public init(devices: [String], dryRun: Bool) {
        var seen: Set<String> = []
        self.devices = devices.filter { seen.insert($0).inserted }
        self.dryRun = dryRun
        states = Dictionary(uniqueKeysWithValues: self.devices.map { ($0, .waiting) })
    }

    /// The devices whose answer is awaited, in the order given at first.
    public var awaited: [String] {
        guard !isFinished else { return [] }
        return devices.filter {
            switch states[$0] {
            case .preparing, .applying, .rollingBack: true
            default: false
            }
        }
    }

    /// To be called once, first.
    public mutating func start() -> [Action] {
        guard !isFinished, devices.allSatisfy({ isWaiting($0) }) else { return [] }
        guard !devices.isEmpty else { return finish(.success([:])) }
        for device in devices { states[device] = .preparing }
        return devices.map(Action.prepare)
    }

    /// What a device answered to ``Action/prepare(_:)``. The first refusal ends the batch, since nothing has been
    /// touched.
    public mutating func prepared(_ device: String, _ result: Result<JSONValue, BusError>) -> [Action] {
        guard !isFinished, case .preparing = states[device] else { return [] }
        switch result {
        case .failure(let error):
            return finish(.failure(error, device: device, rolledBack: [], notRolledBack: []))
        case .success(let answer):
            states[device] = .prepared(answer)
            let answers = devices.compactMap { name in
                if case .prepared(let answer) = states[name] { (name, answer) } else { nil }
            }
            guard answers.count == devices.count else { return [] }
            if dryRun { return finish(.success(Dictionary(answers) { first, _ in first })) }
            for device in devices { states[device] = .applying }
            return devices.map(Action.apply)
        }
    }

    /// What a device answered to ``Action/apply(_:)``.
    ///
    /// A failure whose data says `notRolledBack: true` comes from a device that couldn't put itself back; it is told
    /// so.
    public mutating func applied(_ device: String, _ result: Result<JSONValue, BusError>) -> [Action] {
        guard !isFinished, case .applying = states[device] else { return [] }
        switch result {
        case .success(let answer): states[device] = .applied(answer)
        case .failure(let error):
            states[device] = error.data["notRolledBack"] == true ? .notRolledBack : .undone
            if failure == nil { failure = (error, device) }
        }
        return proceed()
    }

    /// What came of ``Action/decide``: kept, or why it could not be.
    public mutating func decided(_ result: Result<Void, BusError>) -> [Action] {
        guard !isFinished, decision == .asked else { return [] }
        decision = .made
        if case .failure(let error) = result, failure == nil { failure = (error, devices.first ?? "") }
        return proceed()
    }

    /// What a device answered to ``Action/rollBack(_:)``.
    public mutating func rolledBack(_ device: String, _ result: Result<Void, BusError>) -> [Action] {
        guard !isFinished, case .rollingBack = states[device] else { return [] }
        switch result {
        case .success: states[device] = .rolledBack
        case .failure: states[device] = .notRolledBack
        }
        return proceed()
    }

    /// What answered for a device has ended. A change that it had only checked can't be made any more; one that it has
    /// made is kept by whatever comes after it.
    public mutating func ended(_ device: String, _ error: BusError) -> [Action] {
        guard case .prepared = states[device] else { return [] }
        return lost(device, error)
    }

    /// A device is gone, or took too long.
    public mutating func lost(_ device: String, _ error: BusError) -> [Action] {
        guard !isFinished else { return [] }
        switch states[device] {
        case .waiting, .preparing, .prepared:
            return finish(.failure(error, device: device, rolledBack: [], notRolledBack: []))
        case .applying, .applied, .rollingBack:
            states[device] = .notRolledBack
            if failure == nil { failure = (error, device) }
            return proceed()
        case .undone, .rolledBack, .notRolledBack, nil:
            return []
        }
    }

    /// What follows from the states while devices apply or roll back.
    private mutating func proceed() -> [Action] {
        guard let failure else {
            let answers = devices.compactMap { name in
                if case .applied(let answer) = states[name] { (name, answer) } else { nil }
            }
            guard answers.count == devices.count else { return [] }
            if devices.count > 1, decision != .made {
                let isAsked = decision == .asked
                decision = .asked
                return isAsked ? [] : [.decide]
            }
            return finish(.success(Dictionary(answers) { first, _ in first }))
        }
        var actions: [Action] = []
        for device in devices.reversed() {
            if case .applied = states[device] {
                states[device] = .rollingBack
                actions.append(.rollBack(device))
            }
        }
        guard awaited.isEmpty else { return actions }
        let rolledBack = devices.filter { if case .rolledBack = states[$0] { true } else { false } }
        let notRolledBack = devices.filter { if case .notRolledBack = states[$0] { true } else { false } }
        return actions
            + finish(
                .failure(failure.error, device: failure.device, rolledBack: rolledBack, notRolledBack: notRolledBack))
    }

    private func isWaiting(_ device: String) -> Bool { if case .waiting = states[device] { true } else { false } }

    private mutating func finish(_ outcome: Outcome) -> [Action] {
        isFinished = true
        return [.finish(outcome)]
    }
}
