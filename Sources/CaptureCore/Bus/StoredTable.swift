public import JSON

/// A value that is stored in a file of its own, as a whole.
public protocol KeptBook: Hashable, Sendable {
    /// An empty one.
    init()
    /// Reads what ``json`` writes.
    init(json: JSONValue) throws(BookDamage)
    var json: JSONValue { get }
    /// The entries that could not be read, each with the reason.
    var leftOut: [String] { get }
}

extension KeptBook {
    public var leftOut: [String] { [] }
}

/// Why a text is no book.
public struct BookDamage: Error, Hashable, Sendable, CustomStringConvertible {
    public var description: String

    public init(description: String) { self.description = description }

    /// The member with the entries, if the stored text has that version.
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
