import JSON

/// True if every member of `part` is in `whole` with the same value; in objects only, and at every depth.
func isContained(_ part: JSONValue, in whole: JSONValue) -> Bool {
    guard case .object(let members) = part else {
        return part == whole || part.double != nil && part.double == whole.double
    }
    return members.allSatisfy { name, member in whole[name].map { isContained(member, in: $0) } ?? false }
}
