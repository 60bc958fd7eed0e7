import CSQLite

/// What SQLite refuses, in its own words.
public struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The library's function, or the statement.
    public var operation: String
    /// Its extended result code (`SQLITE_IOERR_READ`).
    public var code: Int32
    public var message: String

    public init(operation: String, code: Int32, message: String) {
        self.operation = operation
        self.code = code
        self.message = message
    }

    init(_ operation: String, _ code: Int32, _ database: OpaquePointer?) {
        let text: UnsafePointer<CChar>? = if let database { sqlite3_errmsg(database) } else { sqlite3_errstr(code) }
        self.init(operation: operation, code: code, message: text.map { String(cString: $0) } ?? "unknown error")
    }

    /// What is in the file is no database, or not a whole one: only ``Database/reset()`` helps.
    public var isDamage: Bool { [SQLITE_CORRUPT, SQLITE_NOTADB].contains(code & 0xFF) }

    /// The statement doesn't fit the tables that there are, or is none.
    public var isOfStatement: Bool { code & 0xFF == SQLITE_ERROR }

    public var description: String { "\(operation): \(message)" }
}
