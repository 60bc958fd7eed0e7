public import JSON

/// What a live bus has to answer, as `Protocol/vectors/live-*.json` write it.
public struct LivePattern: Sendable {
    /// Values of earlier replies, by name.
    public var saved: [String: JSONValue]

    public init(saved: [String: JSONValue] = [:]) { self.saved = saved }

    /// Why the value does not match; nil when it does.
    public func mismatch(_ value: JSONValue, _ pattern: JSONValue, path: String = "") -> String? {
        func wrong(_ what: String) -> String { "\(path.isEmpty ? "." : path): \(what), not \(value)" }
        switch pattern {
        case .object(let members):
            if members.count == 1, let (name, argument) = members.first, name.hasPrefix("$") {
                return rule(name, filled(argument), value, path)
            }
            guard let there = value.object else { return wrong("an object") }
            for name in members.keys.sorted() {
                let member = members[name] ?? .null
                if member["$absent"] != nil {
                    if there[name] != nil { return "\(path).\(name): no such member" }
                } else if let value = there[name] {
                    if let problem = mismatch(value, member, path: "\(path).\(name)") { return problem }
                } else {
                    return "\(path).\(name): is missing"
                }
            }
            return nil
        case .array(let elements):
            guard let there = value.array, there.count == elements.count else {
                return wrong("\(elements.count) elements")
            }
            for (index, element) in elements.enumerated() {
                if let problem = mismatch(there[index], element, path: "\(path)[\(index)]") { return problem }
            }
            return nil
        case .string(let text):
            guard let name = Self.name(in: text) else { return value == pattern ? nil : wrong(text) }
            guard let known = saved[name] else { return wrong("the value '\(name)', which was not saved") }
            return mismatch(value, known, path: path)
        default:
            if let number = pattern.double { return value.double == number ? nil : wrong("\(pattern)") }
            return value == pattern ? nil : wrong("\(pattern)")
        }
    }

    /// A request with the saved values put in.
    public func filled(_ value: JSONValue) -> JSONValue {
        switch value {
        case .string(let text): Self.name(in: text).flatMap { saved[$0] } ?? value
        case .array(let elements): .array(elements.map(filled))
        case .object(let members): .object(members.mapValues(filled))
        default: value
        }
    }

    /// Keeps parts of a reply: paths such as `result.formats[0].id` by the names to keep them under.
    ///
    /// - Returns: the paths at which there is nothing.
    public mutating func save(_ paths: JSONValue?, from reply: JSONValue) -> [String] {
        var missing: [String] = []
        for (name, path) in paths?.object ?? [:] {
            let steps = (path.string ?? "").split { $0 == "." || $0 == "[" || $0 == "]" }
            var part: JSONValue? = reply
            for step in steps { part = Int(step).map { part?[$0] } ?? part?[String(step)] }
            if let part { saved[name] = part } else { missing.append(path.string ?? name) }
        }
        return missing
    }

    private func rule(_ name: String, _ argument: JSONValue, _ value: JSONValue, _ path: String) -> String? {
        let isMet =
            switch name {
            case "$any": true
            case "$type": argument.string == value.typeName || argument == "number" && value.double != nil
            case "$contains": value.array?.contains { mismatch($0, argument) == nil } ?? false
            case "$prefix": value.string?.hasPrefix(argument.string ?? "\u{0}") ?? false
            case "$min": (value.double ?? -.infinity) >= (argument.double ?? .infinity)
            case "$above": (value.double ?? -.infinity) > (argument.double ?? .infinity)
            case "$length":
                (value.array?.count ?? value.string?.unicodeScalars.count).map(Int64.init) == argument.integer
            default: false
            }
        return isMet ? nil : "\(path.isEmpty ? "." : path): \(name) \(argument), not \(value)"
    }

    private static func name(in text: String) -> String? {
        text.hasPrefix("${") && text.hasSuffix("}") ? String(text.dropFirst(2).dropLast()) : nil
    }
}
