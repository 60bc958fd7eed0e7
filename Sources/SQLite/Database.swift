import CSQLite

/// A database of SQLite, in a file or in memory.
///
/// Used by one thread at a time.
public final class Database {
    let handle: OpaquePointer

    /// Opens the database in a file, and makes it if it isn't there. What is in it shows with the first statement.
    ///
    /// - Parameters:
    ///   - path: absolute.
    ///   - isReadOnly: it is neither made nor changed.
    ///   - patience: how long a statement waits for another process, milliseconds.
    public convenience init(_ path: String, isReadOnly: Bool = false, patience: Int32) throws(SQLiteError) {
        try self.init(opening: path, isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        sqlite3_busy_timeout(handle, patience)
    }

    /// An empty one that ends with this value.
    public convenience init() throws(SQLiteError) {
        try self.init(opening: ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY)
    }

    private init(opening path: String, _ flags: Int32) throws(SQLiteError) {
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        guard code == SQLITE_OK, let handle else {
            defer { sqlite3_close_v2(handle) }
            throw SQLiteError("sqlite3_open_v2", code, handle)
        }
        self.handle = handle
    }

    // Statements that are left keep it open until they end.
    deinit { sqlite3_close_v2(handle) }

    /// Carries out statements that answer nothing, one after the other.
    public func execute(_ statements: String) throws(SQLiteError) {
        try check(statements) { sqlite3_exec(handle, statements, nil, nil, nil) }
    }

    /// Carries out the body as one change: all of it is there afterwards, or, when it throws, nothing.
    public func transaction(_ body: () throws(SQLiteError) -> Void) throws(SQLiteError) {
        try execute("BEGIN IMMEDIATE")
        do throws(SQLiteError) {
            try body()
            try execute("COMMIT")
        } catch {
            // It may have been rolled back already.
            if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
            throw error
        }
    }

    /// Empties it, whatever is in its file, also what is no database.
    public func reset() throws(SQLiteError) {
        try check("SQLITE_DBCONFIG_RESET_DATABASE") { csqlite_reset_database(handle, 1) }
        defer { _ = csqlite_reset_database(handle, 0) }
        try execute("VACUUM")
    }

    /// Makes another one the same as this.
    public func copy(to other: Database) throws(SQLiteError) {
        guard let backup = sqlite3_backup_init(other.handle, "main", handle, "main") else {
            throw SQLiteError("sqlite3_backup_init", sqlite3_errcode(other.handle), other.handle)
        }
        let step = sqlite3_backup_step(backup, -1)
        let end = sqlite3_backup_finish(backup)
        guard step == SQLITE_DONE, end == SQLITE_OK else {
            throw SQLiteError("sqlite3_backup_step", step == SQLITE_DONE ? end : step, nil)
        }
    }

    func check(_ operation: String, _ call: () -> Int32) throws(SQLiteError) {
        let code = call()
        guard code == SQLITE_OK else { throw SQLiteError(operation, code, handle) }
    }
}
