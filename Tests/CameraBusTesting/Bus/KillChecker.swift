/// Whether a bus has kept, over all its deaths, what it promises. A pure function of the history.
public enum KillChecker {
    public enum Violation: Sendable, Hashable, CustomStringConvertible {
        /// Two held one device at one time.
        case twoHolders(device: String, fences: [UInt64], nanoseconds: Int64)
        /// A lock that was given after another one had been has no higher fence.
        case fenceNotRisen(before: UInt64, after: UInt64)
        /// A token was refused while its holder lived and had not let go of it.
        case lockForgotten(token: String, fence: UInt64)
        /// A change got a generation that is not above that of one that was acknowledged before it was asked for.
        case generationNotRisen(device: String, before: UInt64, after: UInt64)
        /// One generation stands for two values.
        case twoValues(device: String, generation: UInt64, values: [Int64])
        /// A device had an older generation than was acknowledged before.
        case commitLost(device: String, acknowledged: UInt64, seen: UInt64)
        /// A device had a value that nobody can have given it last.
        case wrongValue(device: String, value: Int64, expected: [Int64])
        /// A batch was made on one of its devices and not on the other.
        case halfBatch(client: String, values: [Int64])
        /// Somebody waited and was not served.
        case starved(client: String, devices: [String], milliseconds: Int64)
        /// `isTaken`: the camera gave it, and the topic has it; the subscriber got none. `pause`: how long nothing
        /// came.
        case frameLost(device: String, after: UInt64, next: UInt64, isTaken: Bool, pause: Int64)
        case streamBroken(device: String, after: UInt64)
        /// Two coordinators had one epoch.
        case epochAgain(String)
        case surprise(String)

        public var description: String {
            switch self {
            case .twoHolders(let device, let fences, let time):
                "\(device) had two holders for \(time / 1000) µs: fences \(fences)"
            case .fenceNotRisen(let before, let after): "fence \(after) was given after \(before)"
            case .lockForgotten(let token, let fence): "the living holder's lock \(fence) (\(token)) was forgotten"
            case .generationNotRisen(let device, let before, let after):
                "\(device): generation \(after) after \(before)"
            case .twoValues(let device, let generation, let values):
                "\(device): generation \(generation) stands for \(values)"
            case .commitLost(let device, let acknowledged, let seen):
                "\(device): generation \(acknowledged) was acknowledged, and \(seen) is there"
            case .wrongValue(let device, let value, let expected): "\(device) has \(value), not one of \(expected)"
            case .halfBatch(let client, let values): "\(client) found a batch half made: \(values)"
            case .starved(let client, let devices, let time):
                "\(client) waited \(time) ms for \(devices) and was not served"
            case .frameLost(let device, let after, let next, let isTaken, let pause):
                "\(device): frame \(next) came after \(after), lost \(isTaken ? "on the way" : "at the camera"), "
                    + "after \(pause / 1_000_000) ms"
            case .streamBroken(let device, let after): "\(device): the stream broke after frame \(after)"
            case .epochAgain(let epoch): "the epoch \(epoch) came again"
            case .surprise(let what): what
            }
        }
    }

    public static func violations(_ history: KillHistory) -> [Violation] {
        twoHolders(history) + fences(history) + forgotten(history) + generations(history) + readings(history)
            + frames(history) + epochs(history)
            + history.pairs.filter { Set($0.values).count > 1 }.map { .halfBatch(client: $0.client, values: $0.values) }
            + history.vainWaits.map {
                .starved(client: $0.client, devices: $0.devices, milliseconds: ($0.answered - $0.asked) / 1_000_000)
            } + history.surprises.map { .surprise($0) }
    }

    // MARK: Locks

    private static func twoHolders(_ history: KillHistory) -> [Violation] {
        var violations: [Violation] = []
        for device in Set(history.holds.flatMap(\.devices)).sorted() {
            let holds = history.holds.filter { $0.devices.contains(device) && $0.from < $0.until }
                .sorted { $0.from < $1.from }
            // The one that lasts longest of all before.
            var last: KillHistory.Hold?
            for hold in holds {
                if let last, last.token != hold.token, hold.from < last.until {
                    violations.append(
                        .twoHolders(
                            device: device, fences: [last.fence, hold.fence],
                            nanoseconds: min(last.until, hold.until) - hold.from))
                }
                if hold.until > last?.until ?? .min { last = hold }
            }
        }
        return violations
    }

    private static func fences(_ history: KillHistory) -> [Violation] {
        var violations: [Violation] = []
        let given = history.holds.sorted { $0.from < $1.from }
        var next = 0
        var highest: UInt64 = 0
        for hold in history.holds.sorted(by: { $0.asked < $1.asked }) {
            while next < given.count, given[next].from <= hold.asked {
                highest = max(highest, given[next].fence)
                next += 1
            }
            if hold.fence <= highest { violations.append(.fenceNotRisen(before: highest, after: hold.fence)) }
        }
        for (fence, holds) in Dictionary(grouping: history.holds, by: \.fence)
        where Set(holds.map(\.token)).count > 1 {
            violations.append(.fenceNotRisen(before: fence, after: fence))
        }
        return violations
    }

    private static func forgotten(_ history: KillHistory) -> [Violation] {
        let holds = Dictionary(grouping: history.holds, by: \.token)
        return history.proofs.filter { !$0.isHeld }.flatMap { proof in
            (holds[proof.token] ?? []).filter { $0.from <= proof.sent && proof.answered <= $0.until }
                .map { .lockForgotten(token: $0.token, fence: $0.fence) }
        }
    }

    // MARK: Changes

    private static func generations(_ history: KillHistory) -> [Violation] {
        var violations: [Violation] = []
        for device in Set(history.commits.flatMap(\.devices)).sorted() {
            let made = acknowledged(history, device)
            let byAnswer = made.sorted { $0.answered < $1.answered }
            var next = 0
            var highest: UInt64 = 0
            for commit in made.sorted(by: { $0.sent < $1.sent }) {
                while next < byAnswer.count, byAnswer[next].answered <= commit.sent {
                    highest = max(highest, byAnswer[next].generation)
                    next += 1
                }
                if commit.generation <= highest {
                    violations.append(
                        .generationNotRisen(device: device, before: highest, after: commit.generation))
                }
            }
            for (generation, commits) in Dictionary(grouping: made, by: \.generation)
            where Set(commits.map(\.value)).count > 1 {
                violations.append(
                    .twoValues(device: device, generation: generation, values: commits.map(\.value).sorted()))
            }
        }
        return violations
    }

    private static func readings(_ history: KillHistory) -> [Violation] {
        var violations: [Violation] = []
        for (device, readings) in Dictionary(grouping: history.readings, by: \.device) {
            let made = acknowledged(history, device).sorted { $0.generation < $1.generation }
            let unknown = history.commits.filter { $0.answered == nil && $0.devices.contains(device) }
            for reading in readings {
                let known = made.filter { $0.answered <= reading.from }.map(\.generation).max() ?? 0
                guard reading.generation >= known else {
                    violations.append(
                        .commitLost(device: device, acknowledged: known, seen: reading.generation))
                    continue
                }
                // The last acknowledged change up to that generation, unless one whose answer was lost came after it.
                guard let last = made.last(where: { $0.generation <= reading.generation }) else { continue }
                var expected = [last.value]
                if last.generation < reading.generation {
                    expected += unknown.filter { $0.sent <= reading.until && $0.sent >= last.sent }.map(\.value)
                    // Another that was being made, and was not answered yet.
                    expected += made.filter { $0.generation == reading.generation }.map(\.value)
                }
                if !expected.contains(reading.value) {
                    violations.append(.wrongValue(device: device, value: reading.value, expected: expected))
                }
            }
        }
        return violations
    }

    private struct Acknowledged {
        var value: Int64
        var sent: Int64
        var answered: Int64
        var generation: UInt64
    }

    private static func acknowledged(_ history: KillHistory, _ device: String) -> [Acknowledged] {
        history.commits.compactMap { commit in
            guard commit.devices.contains(device), let answered = commit.answered,
                let generation = commit.generations[device]
            else { return nil }
            return Acknowledged(value: commit.value, sent: commit.sent, answered: answered, generation: generation)
        }
    }

    // MARK: Frames, epochs

    /// Frames that were lost while, or right after, the machine stood still: no death is to blame for those.
    public static func excusedLosses(_ history: KillHistory) -> Int { losses(history).filter(\.isExcused).count }

    private static func frames(_ history: KillHistory) -> [Violation] {
        losses(history).filter { !$0.isExcused }.map(\.violation)
    }

    private struct Loss {
        var violation: Violation
        var isExcused: Bool
    }

    /// A stall shorter than this costs no frame.
    private static let shortestStall: Int64 = 20_000_000
    /// How long after a stall its frames still crowd together.
    private static let aftermath: Int64 = 250_000_000

    private static func losses(_ history: KillHistory) -> [Loss] {
        let stalls = history.stalls.filter { $0.until - $0.from >= shortestStall }
        var losses: [Loss] = []
        var last: [String: KillHistory.Frame] = [:]
        for frame in history.frames {
            if let before = last[frame.device] {
                let isNext =
                    frame.captureSequence == before.captureSequence &+ 1 && frame.sequence == before.sequence &+ 1
                if before.stream != frame.stream {
                    // Nothing excuses that.
                    losses.append(
                        Loss(
                            violation: .streamBroken(device: frame.device, after: before.captureSequence),
                            isExcused: false))
                } else if !isNext {
                    losses.append(
                        Loss(
                            violation: .frameLost(
                                device: frame.device, after: before.captureSequence, next: frame.captureSequence,
                                isTaken: frame.sequence != before.sequence &+ 1, pause: frame.time - before.time),
                            isExcused: stalls.contains {
                                $0.from <= frame.time && $0.until + aftermath >= before.time
                            }))
                }
            }
            last[frame.device] = frame
        }
        return losses
    }

    private static func epochs(_ history: KillHistory) -> [Violation] {
        Dictionary(grouping: history.epochs, by: { $0 }).filter { $0.value.count > 1 }.map { .epochAgain($0.key) }
    }
}
