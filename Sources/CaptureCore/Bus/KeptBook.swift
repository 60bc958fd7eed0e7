public import JSON

/// What is kept in a file of its own, whole.
public protocol KeptBook: Hashable, Sendable {
    /// An empty one.
    init()
    /// Reads what ``json`` writes.
    init(json: JSONValue) throws(BookDamage)
    var json: JSONValue { get }
    /// What of it could not be read, each with why.
    var leftOut: [String] { get }
}

extension KeptBook {
    public var leftOut: [String] { [] }
}

/// Why a text is no book.
public struct BookDamage: Error, Hashable, Sendable, CustomStringConvertible {
    public var description: String

    public init(description: String) { self.description = description }

    /// The member that holds the book's entries, if the book is of that version.
    static func members(
        _ name: String, of json: JSONValue, version: Int
    ) throws(BookDamage) -> [String: JSONValue] {
        guard let found = json["version"]?.integer else { throw BookDamage(description: "it has no version") }
        guard found == Int64(version) else {
            throw BookDamage(description: "it has the version \(found), and this program knows \(version)")
        }
        guard let members = json[name]?.object else { throw BookDamage(description: "it has no \(name)") }
        return members
    }
}
