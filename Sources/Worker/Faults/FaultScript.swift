import BusProtocol
import CaptureSources
import JSON

/// Faults with their times: a value that says which is due, and remembers what became of those before.
struct FaultScript {
    /// What became of a step.
    enum State: Hashable {
        case waiting, done
        case failed(String)
    }

    struct Step {
        /// Milliseconds from the start.
        let at: Int64
        let fault: VirtualFault
        /// As it was given.
        let json: JSONValue
        var state = State.waiting
    }

    /// When it began, monotonic nanoseconds.
    let started: Int64
    /// In the order of their times; those of one time in the order in which they were given.
    private(set) var steps: [Step]
    private var next = 0

    static let maximumSteps = 256

    /// Reads [{at, fault, …}].
    ///
    /// - Parameter now: when it begins, monotonic nanoseconds.
    init(json: JSONValue, at now: Int64) throws(BusError) {
        guard let list = json.array, (1...Self.maximumSteps).contains(list.count) else {
            throw .invalidParams("steps", "must be 1 to \(Self.maximumSteps) steps")
        }
        var steps: [Step] = []
        for (index, json) in list.enumerated() {
            guard let at = json["at"]?.double, (0...86_400_000).contains(at) else {
                throw .invalidParams("steps[\(index)].at", "must be 0 to 86400000")
            }
            do throws(BusError) {
                steps.append(Step(at: Int64(at), fault: try VirtualFault(json: json), json: json))
            } catch {
                throw error.inside("steps[\(index)]")
            }
        }
        let order = steps.indices.sorted { (steps[$0].at, $0) < (steps[$1].at, $1) }
        self.steps = order.map { steps[$0] }
        started = now
    }

    /// When the next step is due, monotonic nanoseconds; nil: none is left.
    var nextTime: Int64? { steps.indices.contains(next) ? started + steps[next].at * 1_000_000 : nil }

    /// The steps that are due, by their numbers, each once.
    mutating func due(at now: Int64) -> [Int] {
        var due: [Int] = []
        while let time = nextTime, time <= now {
            due.append(next)
            next += 1
        }
        return due
    }

    mutating func finish(_ step: Int, _ state: State) {
        if steps.indices.contains(step) { steps[step].state = state }
    }

    /// {started, isRunning, steps: [{at, fault, …, state, why?}]}
    var json: JSONValue {
        [
            "started": .integer(started), "isRunning": .bool(nextTime != nil),
            "steps": .array(
                steps.map { step in
                    var members = step.json.object ?? [:]
                    switch step.state {
                    case .waiting: members["state"] = "waiting"
                    case .done: members["state"] = "done"
                    case .failed(let why):
                        members["state"] = "failed"
                        members["why"] = .string(why)
                    }
                    return .object(members)
                }),
        ]
    }
}

extension BusError {
    /// The same of a value that stands there.
    fileprivate func inside(_ place: String) -> BusError {
        guard reason == .invalidParams, let path = data["path"]?.string, let why = data["why"]?.string else {
            return self
        }
        return .invalidParams("\(place).\(path)", why)
    }
}
