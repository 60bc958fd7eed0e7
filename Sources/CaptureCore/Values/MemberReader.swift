import BusProtocol
import JSON

/// Reads an object member by member, and tells what is wrong with one by its path.
struct MemberReader {
    let path: String
    private let members: [String: JSONValue]
    private var known: Set<String> = []

    /// - Parameter path: where the object stands, as errors name it: `changes[0].activeFormat`.
    init(_ json: JSONValue, path: String) throws(BusError) {
        guard let members = json.object else {
            throw .invalidParams(path, "must be an object, not \(json.typeName)")
        }
        self.path = path
        self.members = members
    }

    func path(of name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

    /// The member as it is; nil if there is none.
    mutating func value(_ name: String) -> JSONValue? {
        known.insert(name)
        return members[name]
    }

    /// The member, or nil where it is missing or null: how a value that isn't known is written.
    mutating func known(_ name: String) -> JSONValue? {
        guard let value = value(name), !value.isNull else { return nil }
        return value
    }

    mutating func required(_ name: String) throws(BusError) -> JSONValue {
        guard let value = value(name) else { throw .invalidParams(path(of: name), "is missing") }
        return value
    }

    mutating func string(_ name: String) throws(BusError) -> String {
        let value = try required(name)
        guard let text = value.string else {
            throw .invalidParams(path(of: name), "must be a string, not \(value.typeName)")
        }
        return text
    }

    mutating func integer(_ name: String, in range: ClosedRange<Int64> = .min ... .max) throws(BusError) -> Int64 {
        let value = try required(name)
        guard let number = value.integer else {
            throw .invalidParams(path(of: name), "must be an integer, not \(value.typeName)")
        }
        guard range.contains(number) else {
            throw .invalidParams(path(of: name), "must be between \(range.lowerBound) and \(range.upperBound)")
        }
        return number
    }

    /// A string; nil if there is none.
    mutating func text(_ name: String) throws(BusError) -> String? {
        known(name) == nil ? nil : try string(name)
    }

    /// An integer; nil if there is none.
    mutating func number(_ name: String, in range: ClosedRange<Int64> = .min ... .max) throws(BusError) -> Int64? {
        known(name) == nil ? nil : try integer(name, in: range)
    }

    /// True or false; nil if there is none.
    mutating func flag(_ name: String) throws(BusError) -> Bool? {
        guard let value = known(name) else { return nil }
        guard let flag = value.bool else {
            throw .invalidParams(path(of: name), "must be true or false, not \(value.typeName)")
        }
        return flag
    }

    mutating func array(_ name: String) throws(BusError) -> [JSONValue] {
        let value = try required(name)
        guard let elements = value.array else {
            throw .invalidParams(path(of: name), "must be an array, not \(value.typeName)")
        }
        return elements
    }

    /// A word out of a fixed set.
    mutating func word<Word: RawRepresentable & CaseIterable>(_ name: String) throws(BusError) -> Word
    where Word.RawValue == String {
        let text = try string(name)
        guard let word = Word(rawValue: text) else {
            let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw .invalidParams(path(of: name), "must be one of \(words)")
        }
        return word
    }

    /// A frame duration such as `1/30`.
    mutating func duration(_ name: String) throws(BusError) -> FrameDuration {
        try FrameDuration(json: try required(name), path: path(of: name))
    }

    /// Refuses members that nobody asked for.
    func refuseOthers() throws(BusError) {
        if let stranger = members.keys.filter({ !known.contains($0) }).min() {
            throw .invalidParams(path(of: stranger), "is not a known member")
        }
    }
}
