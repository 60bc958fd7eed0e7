public import JSON

/// A value that is stored in a file of its own, as a whole.
public protocol StoredTable: Hashable, Sendable {
    /// An empty one.
    init()
    /// Reads what ``json`` writes.
    init(json: JSONValue) throws(StoredTableError)
    var json: JSONValue { get }
    /// The entries that could not be read, each with the reason.
    var leftOut: [String] { get }
}

extension StoredTable {
    public var leftOut: [String] { [] }
}

/// Why a text is not a stored table.
public struct StoredTableError: Error, Hashable, Sendable, CustomStringConvertible {
    public var description: String

    public init(description: String) { self.description = description }

    /// The member with the entries, if the stored text has that version.
    static func members(
        _ name: String, of json: JSONValue, version: Int
    ) throws(StoredTableError) -> [String: JSONValue] {
        guard let found = json["version"]?.integer else { throw StoredTableError(description: "it has no version") }
        guard found == Int64(version) else {
            throw StoredTableError(description: "it has version \(found); this program supports \(version)")
        }
        guard let members = json[name]?.object else { throw StoredTableError(description: "it has no \(name)") }
        return members
    }
}
