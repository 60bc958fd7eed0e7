public import JSON

/// A fault of the machine, and how to repair it.
public struct Finding: Hashable, Sendable {
    /// Stable, for scripts: `node-not-permitted`.
    public var id: String
    /// What it is about: a node, a process, a device; nil: the machine.
    public var subject: String?
    /// What it means, in a sentence or two.
    public var meaning: String
    /// The command that mends it.
    public var remedy: String
    /// What is to be done or known beside the command.
    public var advice: String?

    public init(_ id: String, _ subject: String? = nil, meaning: String, remedy: String, advice: String? = nil) {
        self.id = id
        self.subject = subject
        self.meaning = meaning
        self.remedy = remedy
        self.advice = advice
    }

    /// {id, subject, meaning, remedy, advice}
    public var json: JSONValue {
        [
            "id": .string(id), "subject": subject.map(JSONValue.string) ?? .null, "meaning": .string(meaning),
            "remedy": .string(remedy), "advice": advice.map(JSONValue.string) ?? .null,
        ]
    }
}

/// The result of a check.
public enum Outcome: Hashable, Sendable {
    /// Nothing is wrong. The text says in a few words what there is; the notes are worth knowing, and no fault.
    case healthy(String, notes: [String] = [])
    /// There was nothing to look at, or it can't be seen from here; the text says why.
    case skipped(String)
    case faulty([Finding], notes: [String] = [])

    /// `faulty` if there are findings.
    static func of(_ findings: [Finding], healthy text: @autoclosure () -> String, notes: [String] = []) -> Outcome {
        findings.isEmpty ? .healthy(text(), notes: notes) : .faulty(findings, notes: notes)
    }
}

/// A check for one kind of fault: a pure function of the facts about the machine.
public protocol Check: Sendable {
    /// Stable, for scripts: `node-permission`.
    var id: String { get }
    func examine(_ facts: Facts) -> Outcome
}

/// A check with its result.
public struct CheckResult: Hashable, Sendable {
    public var check: String
    public var outcome: Outcome

    public init(check: String, outcome: Outcome) {
        self.check = check
        self.outcome = outcome
    }

    public var findings: [Finding] { if case .faulty(let findings, _) = outcome { findings } else { [] } }

    /// {id, outcome: `healthy`, `skipped` or `faulty`, text, notes, findings}
    public var json: JSONValue {
        var members: [String: JSONValue] = ["id": .string(check), "text": .null, "notes": [], "findings": []]
        switch outcome {
        case .healthy(let text, let notes):
            members["outcome"] = "healthy"
            members["text"] = .string(text)
            members["notes"] = JSONValue(notes)
        case .skipped(let why):
            members["outcome"] = "skipped"
            members["text"] = .string(why)
        case .faulty(let findings, let notes):
            members["outcome"] = "faulty"
            members["notes"] = JSONValue(notes)
            members["findings"] = .array(findings.map(\.json))
        }
        return .object(members)
    }
}
