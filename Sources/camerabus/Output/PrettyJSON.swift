import JSON

extension JSONValue {
    /// The value over several lines, for people; members in the order of their names.
    var indented: String { indented(at: 0) }

    private func indented(at depth: Int) -> String {
        let inner = String(repeating: "  ", count: depth + 1)
        let outer = String(repeating: "  ", count: depth)
        switch self {
        case .array(let elements) where !elements.isEmpty:
            let lines = elements.map { inner + $0.indented(at: depth + 1) }
            return "[\n\(lines.joined(separator: ",\n"))\n\(outer)]"
        case .object(let members) where !members.isEmpty:
            let lines = members.keys.sorted().map { name in
                "\(inner)\(JSONValue.string(name)): \((members[name] ?? .null).indented(at: depth + 1))"
            }
            return "{\n\(lines.joined(separator: ",\n"))\n\(outer)}"
        default: return description
        }
    }
}
