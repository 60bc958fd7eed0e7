import CaptureCore
import CaptureLibrary
import Glibc
import LinuxIO
import SQLite

/// Finds entries of the library without reading all of them.
///
/// It lies beside the entries (`index.sqlite3`). They stay the truth, and it is never needed: one that is missing,
/// damaged or of another version is made anew, and where it can't be written, as on a disk that is full, the same is
/// done in memory.
final class LibraryIndex {
    private let library: CaptureLibrary
    private let now: Int64
    private var table: IndexTable

    /// Milliseconds for which another process may keep it.
    private static let patience: Int32 = 2000

    /// As the entries are now.
    ///
    /// - Parameter now: nanoseconds since 1970.
    /// - Throws: when their folder can't be read.
    init(of library: CaptureLibrary, now: Int64 = MonotonicClock.realtime()) throws(LibraryError) {
        self.library = library
        self.now = now
        table = try Self.memory(library)
        // Beside a library that isn't there is nothing.
        guard try library.stamp() != nil, isPlain else {
            try fillAnew()
            return
        }
        try begin()
    }

    private func begin() throws(LibraryError) {
        do throws(IndexFailure) {
            do throws(IndexFailure) {
                try open()
            } catch {
                guard case .database(let error) = error else { throw error }
                if error.isBeyondUse {
                    throwAway()
                    try open()
                } else {
                    try copy()
                }
            }
        } catch {
            switch error {
            case .library(let error): throw error
            case .database: try fillAnew()
            }
        }
    }

    private var path: String { library.indexPath }

    // Or not there. What is something else may hold us up.
    private var isPlain: Bool {
        var status = stat()
        return lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG
    }

    private static func memory(_ library: CaptureLibrary) throws(LibraryError) -> IndexTable {
        do throws(SQLiteError) {
            return IndexTable(database: try Database(), library: library)
        } catch {
            throw .index(error)
        }
    }

    // The file itself.
    private func open() throws(IndexFailure) {
        do throws(SQLiteError) {
            makePrivate(path)
            table = IndexTable(database: try Database(path, patience: Self.patience), library: library)
            do throws(SQLiteError) {
                try table.prepare()
            } catch {
                guard error.isBeyondUse else { throw error }
                try table.database.reset()
                try table.prepare()
            }
        } catch {
            throw .database(error)
        }
        try table.update(now: now, inTurn: true)
    }

    // What is in the file, where that can't be changed.
    private func copy() throws(IndexFailure) {
        do throws(SQLiteError) {
            table = IndexTable(database: try Database(), library: library)
            try Database(path, isReadOnly: true, patience: Self.patience).copy(to: table.database)
            try table.prepare()
        } catch {
            throw .database(error)
        }
        try table.update(now: now)
    }

    private func fillAnew() throws(LibraryError) {
        table = try Self.memory(library)
        do throws(IndexFailure) {
            do throws(SQLiteError) { try table.prepare() } catch { throw .database(error) }
            try table.update(now: now)
        } catch {
            switch error {
            case .library(let error): throw error
            case .database(let error): throw .index(error)
            }
        }
    }

    // Whoever comes next begins with an empty one.
    private func throwAway() { try? Database(path, patience: Self.patience).reset() }

    // MARK: What is chosen

    /// Which entries may be meant, the newest first (``IndexTable/places(_:user:after:count:)``).
    func places(
        _ filter: LibrarianRequest.Filter, user: UInt32?, after place: IndexTable.Place?, count: Int
    ) throws(LibraryError) -> [IndexTable.Place] {
        try ask { (table) throws(SQLiteError) in
            try table.places(filter, user: user, after: place, count: count)
        }
    }

    /// Entries that can't be read, in the order of the alphabet, and why.
    func problems() throws(LibraryError) -> [(id: String, why: String)] {
        try ask { (table) throws(SQLiteError) in try table.problems() }
    }

    /// Bytes of the entries of each user.
    func usage() throws(LibraryError) -> [(uid: UInt32, bytes: Int64)] {
        try ask { (table) throws(SQLiteError) in try table.usage() }
    }

    private func ask<Answer>(_ body: (IndexTable) throws(SQLiteError) -> Answer) throws(LibraryError) -> Answer {
        do throws(SQLiteError) {
            return try body(table)
        } catch {
            if error.isBeyondUse {
                throwAway()
                try begin()
            } else {
                try fillAnew()
            }
        }
        do throws(SQLiteError) { return try body(table) } catch { throw .index(error) }
    }
}

/// Makes the file, or takes it away from others, before SQLite opens it: an index tells who was recorded when. What
/// SQLite makes beside it, it makes with the same mode. Nothing is opened for it, as closing that would let go of what
/// SQLite has locked.
private func makePrivate(_ path: String) {
    if mknod(path, S_IFREG | 0o600, 0) != 0 { chmod(path, 0o600) }
}

/// Who has it brings the index up to date, as long as this value lives: others would do the same work at the same time.
final class IndexTurn {
    private let database: Database

    /// Waits for it.
    ///
    /// - Parameter patience: how long the one before may take, milliseconds.
    /// - Throws: when that takes too long, or nothing can be written.
    init(_ library: CaptureLibrary, patience: Int32 = 5000) throws(SQLiteError) {
        // A file of its own that nobody else can lock. Nothing is ever in it.
        let path = library.indexTurnPath
        makePrivate(path)
        database = try Database(path, patience: patience)
        try database.execute("BEGIN EXCLUSIVE")
    }
}

extension SQLiteError {
    /// Other tables than these are of no more use than none.
    fileprivate var isBeyondUse: Bool { isDamage || isOfStatement }
}

extension LibraryError {
    /// Not even memory takes it.
    fileprivate static func index(_ error: SQLiteError) -> LibraryError {
        .file(SystemError(code: ENOMEM, operation: "index", subject: error.description))
    }
}
