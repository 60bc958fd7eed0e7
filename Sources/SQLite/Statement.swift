import CSQLite

/// A value of a database.
public enum SQLiteValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case text(String)

    /// nil is null.
    public init(_ text: String?) { self = text.map(SQLiteValue.text) ?? .null }
}

/// One statement of a database, to be carried out as often as it is needed.
public final class Statement {
    private let handle: OpaquePointer
    private let database: Database
    private let text: String

    /// - Parameter text: with `?` for each value that ``run(_:)`` and ``rows(_:_:)`` are given.
    public init(_ text: String, in database: Database) throws(SQLiteError) {
        var handle: OpaquePointer?
        try database.check(text) { sqlite3_prepare_v2(database.handle, text, -1, &handle, nil) }
        guard let handle else {
            throw SQLiteError(operation: text, code: SQLITE_MISUSE, message: "there is no statement")
        }
        self.handle = handle
        self.database = database
        self.text = text
    }

    deinit { sqlite3_finalize(handle) }

    /// Carries it out with these values.
    public func run(_ values: [SQLiteValue] = []) throws(SQLiteError) {
        try rows(values) { _ in }
    }

    /// Carries it out with these values, and calls the body with each row of its answer.
    public func rows(_ values: [SQLiteValue] = [], _ body: (borrowing Row) -> Void) throws(SQLiteError) {
        defer {
            sqlite3_reset(handle)
            sqlite3_clear_bindings(handle)
        }
        for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1)) }
        while true {
            let code = sqlite3_step(handle)
            if code == SQLITE_DONE { return }
            guard code == SQLITE_ROW else { throw SQLiteError(text, code, database.handle) }
            body(Row(handle: handle))
        }
    }

    private func bind(_ value: SQLiteValue, at index: Int32) throws(SQLiteError) {
        try database.check(text) {
            switch value {
            case .null: return sqlite3_bind_null(handle, index)
            case .integer(let number): return sqlite3_bind_int64(handle, index, number)
            case .text(var text):
                return text.withUTF8 { bytes in
                    bytes.withMemoryRebound(to: CChar.self) {
                        csqlite_bind_text(handle, index, $0.baseAddress, UInt64($0.count))
                    }
                }
            }
        }
    }

    /// A row of an answer; its columns count from 0.
    public struct Row: ~Copyable {
        fileprivate let handle: OpaquePointer

        /// A number; 0 for null.
        public func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

        /// nil for null.
        public func text(_ column: Int32) -> String? {
            guard let bytes = sqlite3_column_text(handle, column) else { return nil }
            let count = Int(sqlite3_column_bytes(handle, column))
            return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
        }
    }
}
