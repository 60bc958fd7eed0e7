public import JSON

extension Schema {
    /// What is wrong with a value, as `invalidParams` {path, why}; nil when nothing is.
    ///
    /// - Parameter path: where the value stands; empty for `params` itself.
    public func validate(_ value: JSONValue, path: String = "") -> BusError? {
        guard let problem = problem(value, path) else { return nil }
        return .invalidParams(problem.path, problem.why)
    }

    private struct Problem {
        var path: String
        var why: String
        // How far into the value the check came before it failed: the alternative that came furthest is what was meant.
        var depth: Int
    }

    private func problem(_ value: JSONValue, _ path: String, _ depth: Int = 0) -> Problem? {
        func wrong(_ why: String) -> Problem { Problem(path: path, why: why, depth: depth) }
        switch self {
        case .any: return nil
        case .null: return value.isNull ? nil : wrong("must be null")
        case .boolean: return value.bool != nil ? nil : wrong("must be true or false")
        case .integer(let low, let high):
            guard let number = value.integer else { return wrong("must be an integer") }
            return Self.outside(number, low, high).map(wrong)
        case .number(let low, let high):
            guard let number = value.double else { return wrong("must be a number") }
            return Self.outside(number, low, high).map(wrong)
        case .string(let low, let high):
            guard let text = value.string else { return wrong("must be a string") }
            return Self.outside(text.unicodeScalars.count, low > 0 ? low : nil, high, of: "characters").map(wrong)
        case .choice(let words):
            if let text = value.string, words.contains(text) { return nil }
            return wrong(words.count == 1 ? "must be '\(words[0])'" : "must be one of \(words.joined(separator: ", "))")
        case .constant(let constant): return value == constant ? nil : wrong("must be \(constant)")
        case .array(let element, let low, let high):
            guard let elements = value.array else { return wrong("must be an array") }
            if let why = Self.outside(elements.count, low > 0 ? low : nil, high, of: "elements") { return wrong(why) }
            for (index, member) in elements.enumerated() {
                if let problem = element.problem(member, "\(path)[\(index)]", depth + 1) { return problem }
            }
            return nil
        case .object(let properties, let additional):
            guard let members = value.object else { return wrong("must be an object") }
            return Self.problem(members, properties, additional, path, depth)
        case .map(let element, let high):
            guard let members = value.object else { return wrong("must be an object") }
            if let why = Self.outside(members.count, nil, high, of: "members") { return wrong(why) }
            for name in members.keys.sorted() {
                guard let member = members[name] else { continue }
                if let problem = element.problem(member, Self.join(path, name), depth + 1) { return problem }
            }
            return nil
        case .anyOf(let choices):
            let problems = choices.compactMap { $0.problem(value, path, depth) }
            guard problems.count == choices.count else { return nil }
            // An alternative of the value's own kind fails for a reason worth telling; the others only say that they
            // are others.
            let near = problems.indices.filter { choices[$0].takes(value) }
            let best = near.max { left, right in
                (choices[left].familiarity(value), problems[left].depth)
                    < (choices[right].familiarity(value), problems[right].depth)
            }
            if let best { return problems[best] }
            return wrong("must be \(choices.map(\.noun).joined(separator: " or "))")
        case .reference(let name):
            guard let schema = Self.definitions[name] else { return wrong("has no schema '\(name)'") }
            return schema.problem(value, path, depth)
        case .described(_, let schema): return schema.problem(value, path, depth)
        }
    }

    private static func problem(
        _ members: [String: JSONValue], _ properties: [Property], _ additional: Bool, _ path: String, _ depth: Int
    ) -> Problem? {
        if !additional, members.count > properties.count(where: { members[$0.name] != nil }) {
            let names = Set(properties.map(\.name))
            if let unknown = members.keys.filter({ !names.contains($0) }).min() {
                let known =
                    properties.isEmpty
                    ? "none are taken" : "known are \(properties.map(\.name).joined(separator: ", "))"
                return Problem(
                    path: join(path, unknown), why: "is no member that is known here; \(known)", depth: depth + 1)
            }
        }
        for property in properties {
            guard let member = members[property.name] else {
                if property.isRequired {
                    return Problem(path: join(path, property.name), why: "is missing", depth: depth + 1)
                }
                continue
            }
            if let problem = property.schema.problem(member, join(path, property.name), depth + 1) { return problem }
        }
        return nil
    }

    // Names come from outside: cut, so that an error stays small.
    private static func join(_ path: String, _ name: String) -> String {
        path.isEmpty ? String(name.prefix(64)) : "\(path).\(name.prefix(64))"
    }

    private static func outside<Number: Comparable>(
        _ value: Number, _ low: Number?, _ high: Number?, of what: String? = nil
    ) -> String? {
        let below = low.map { value < $0 } ?? false
        let above = high.map { value > $0 } ?? false
        guard below || above else { return nil }
        let verb = what == nil ? "must be" : "must have"
        let unit = what.map { " \($0)" } ?? ""
        return switch (low, high) {
        case (let low?, let high?): "\(verb) \(low) to \(high)\(unit)"
        case (let low?, nil): "\(verb) at least \(low)\(unit)"
        case (nil, let high?): "\(verb) at most \(high)\(unit)"
        case (nil, nil): nil
        }
    }

    // True if the value is of this schema's kind, whatever else is wrong with it.
    private func takes(_ value: JSONValue) -> Bool {
        switch self {
        case .any, .constant: true
        case .null: value.isNull
        case .boolean: value.bool != nil
        case .integer, .number: value.double != nil
        case .string, .choice: value.string != nil
        case .array: value.array != nil
        case .object, .map: value.object != nil
        case .anyOf(let choices): choices.contains { $0.takes(value) }
        case .reference(let name): Self.definitions[name]?.takes(value) ?? false
        case .described(_, let schema): schema.takes(value)
        }
    }

    // How many of an object's members this schema knows: tells which of several objects was meant.
    private func familiarity(_ value: JSONValue) -> Int {
        switch self {
        case .object(let properties, _): properties.count { value[$0.name] != nil }
        case .reference(let name): Self.definitions[name]?.familiarity(value) ?? 0
        case .described(_, let schema): schema.familiarity(value)
        case .anyOf(let choices): choices.map { $0.familiarity(value) }.max() ?? 0
        default: 0
        }
    }

    private var noun: String {
        switch self {
        case .any: "anything"
        case .null: "null"
        case .boolean: "true or false"
        case .integer: "an integer"
        case .number: "a number"
        case .string: "a string"
        case .choice(let words): words.joined(separator: " or ")
        case .constant(let value): "\(value)"
        case .array: "an array"
        case .object, .map: "an object"
        case .anyOf(let choices): choices.map(\.noun).joined(separator: " or ")
        case .reference(let name): Self.definitions[name]?.noun ?? name
        case .described(_, let schema): schema.noun
        }
    }
}
