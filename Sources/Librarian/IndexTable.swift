import CaptureCore
import CaptureLibrary
import LinuxIO
import SQLite

/// Why an index can't be used.
enum IndexFailure: Error {
    /// The entries' folder can't be read.
    case library(LibraryError)
    case database(SQLiteError)
}

/// What a database knows of the library's entries: by what each can be chosen, and by its stamp, whether that is still
/// so.
struct IndexTable {
    /// An entry that may be meant.
    struct Place: Hashable {
        var started: Int64
        var id: String
    }

    let database: Database
    let library: CaptureLibrary

    /// Another one for another meaning of what is in it.
    static let version: Int64 = 2
    /// What has changed so short a time ago, nanoseconds, may change again with the same stamp: file systems count in
    /// up to two seconds.
    private static let margin: Int64 = 3_000_000_000
    /// Entries that are written at once: others can read it in between, and what is written stays when this process is
    /// ended.
    private static let batch = 5000
    /// KiB of it that are held in memory.
    private static let cache = 32768

    // `folder` has the stamp of the entries' folder as long as all of `entry` is as that was then; else it is empty.
    private static let tables = """
        CREATE TABLE folder (device INTEGER, inode INTEGER, changed INTEGER, size INTEGER);
        CREATE TABLE entry (
            id TEXT PRIMARY KEY, device INTEGER, inode INTEGER, changed INTEGER, size INTEGER, problem TEXT,
            started INTEGER, kind TEXT, state TEXT, user INTEGER, take TEXT, photo TEXT, devices TEXT, bytes INTEGER
        ) WITHOUT ROWID;
        CREATE INDEX entry_started ON entry (started, id);
        CREATE INDEX entry_user ON entry (user, started, id);
        CREATE INDEX entry_bytes ON entry (user, bytes);
        CREATE INDEX entry_take ON entry (take) WHERE take IS NOT NULL;
        CREATE INDEX entry_photo ON entry (photo) WHERE photo IS NOT NULL;
        CREATE INDEX entry_recording ON entry (started, id) WHERE state = 'recording';
        CREATE INDEX entry_problem ON entry (id) WHERE problem IS NOT NULL;
        PRAGMA user_version = \(version);
        """

    /// Makes the tables, unless they are there. What another version has left goes.
    func prepare() throws(SQLiteError) {
        try database.execute("PRAGMA cache_size = -\(Self.cache)")
        guard try !isOfThisVersion else { return }
        if try number("SELECT count(*) FROM sqlite_schema") > 0 { try database.reset() }
        try database.transaction { () throws(SQLiteError) in
            // Somebody else may have been first.
            if try !isOfThisVersion { try database.execute(Self.tables) }
        }
    }

    var isOfThisVersion: Bool {
        get throws(SQLiteError) { try number("PRAGMA user_version") == Self.version }
    }

    private func number(_ question: String) throws(SQLiteError) -> Int64 {
        var number: Int64 = 0
        try Statement(question, in: database).rows { number = $0.integer(0) }
        return number
    }

    // MARK: As the entries are

    /// Makes it tell what the entries say now.
    ///
    /// - Parameters:
    ///   - now: nanoseconds since 1970.
    ///   - inTurn: where much has changed, who does the same is waited for: others use the same database.
    func update(now: Int64, inTurn: Bool = false) throws(IndexFailure) {
        let folder: CaptureLibrary.Stamp?
        do throws(LibraryError) { folder = try library.stamp() } catch { throw .library(error) }
        let version: Int64
        do throws(SQLiteError) {
            var known: CaptureLibrary.Stamp?
            try Statement("SELECT device, inode, changed, size FROM folder", in: database).rows {
                known = CaptureLibrary.Stamp($0, 0)
            }
            if let folder, known == folder {
                // What another version couldn't read this one may.
                return try write(try problems().map(\.id).filter { read($0)?.problem == nil }) { (read($0), .unknown) }
            }
            version = try dataVersion
        } catch {
            throw .database(error)
        }
        try compare(now, inTurn)
        guard let folder, folder.changed < now - Self.margin else { return }
        do throws(SQLiteError) {
            try database.transaction { () throws(SQLiteError) in
                // Who has written meanwhile may have written what is older.
                guard try dataVersion == version else { return }
                try database.execute("DELETE FROM folder")
                try Statement("INSERT INTO folder VALUES (?, ?, ?, ?)", in: database).run(folder.values)
            }
        } catch {
            throw .database(error)
        }
    }

    // Another one when somebody else has changed something.
    private var dataVersion: Int64 {
        get throws(SQLiteError) { try number("PRAGMA data_version") }
    }

    private func compare(_ now: Int64, _ inTurn: Bool) throws(IndexFailure) {
        var known: [String: CaptureLibrary.Stamp] = [:]
        do throws(SQLiteError) {
            try Statement("SELECT id, problem IS NULL, device, inode, changed, size FROM entry", in: database).rows {
                known[$0.text(0) ?? ""] = $0.integer(1) == 0 ? .unknown : CaptureLibrary.Stamp($0, 2)
            }
        } catch {
            throw .database(error)
        }
        var changed: [String: CaptureLibrary.Stamp] = [:]
        do throws(LibraryError) {
            try library.forEachStamp { id, stamp in
                guard known.removeValue(forKey: id) != stamp else { return }
                changed[id] = stamp.changed < now - Self.margin ? stamp : .unknown
            }
        } catch {
            throw .library(error)
        }
        // As much as that is to be read by one alone.
        if inTurn, changed.count > Self.batch, let turn = try? IndexTurn(library) {
            return try withExtendedLifetime(turn) { () throws(IndexFailure) in try compare(now, false) }
        }
        do throws(SQLiteError) {
            // Neighbours are written together.
            try write(changed.keys.sorted()) { (read($0), changed[$0] ?? .unknown) }
            try write(Array(known.keys)) { _ in (nil, .unknown) }
        } catch {
            throw .database(error)
        }
    }

    /// What is kept of an entry.
    fileprivate struct Line {
        /// Why it can't be read.
        var problem: String?
        var entry: LibraryEntry?
    }

    // nil: it is gone.
    private func read(_ id: String) -> Line? {
        do throws(LibraryError) {
            return try library.entry(id).map { Line(entry: $0) }
        } catch {
            return Line(problem: error.why)
        }
    }

    // What is read is not held in memory for all of them.
    private func write(
        _ ids: [String], _ line: (String) -> (Line?, CaptureLibrary.Stamp)
    ) throws(SQLiteError) {
        var rest = ids[...]
        guard !rest.isEmpty else { return }
        let remove = try Statement("DELETE FROM entry WHERE id = ?", in: database)
        let put = try Statement(
            "INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", in: database)
        while !rest.isEmpty {
            // Read before: others wait for as long as the change lasts.
            let lines = rest.prefix(Self.batch).map { ($0, line($0)) }
            rest = rest.dropFirst(Self.batch)
            try database.transaction { () throws(SQLiteError) in
                try database.execute("DELETE FROM folder")
                for (id, (line, stamp)) in lines {
                    if let line {
                        try put.run([.text(id)] + stamp.values + line.values)
                    } else {
                        try remove.run([.text(id)])
                    }
                }
            }
        }
    }

    // MARK: What is chosen

    /// Which entries may be meant, the newest first. What is found has to be looked at again.
    ///
    /// - Parameters:
    ///   - user: whose; nil: everybody's.
    ///   - place: those behind that.
    ///   - count: how many at most.
    func places(
        _ filter: LibrarianRequest.Filter, user: UInt32?, after place: Place?, count: Int
    ) throws(SQLiteError) -> [Place] {
        var conditions = ["problem IS NULL"]
        var values: [SQLiteValue] = []
        func require(_ condition: String, _ value: SQLiteValue?) {
            guard let value else { return }
            conditions.append(condition)
            values.append(value)
        }
        require("user = ?", user.map { .integer(Int64($0)) })
        require("started >= ?", filter.since.map(SQLiteValue.integer))
        require("kind = ?", filter.kind.map(SQLiteValue.text))
        require("take = ?", filter.take.map(SQLiteValue.text))
        require("photo = ?", filter.photo.map(SQLiteValue.text))
        require("instr(devices, ?) > 0", filter.device.map { .text("\n\($0)\n") })
        require("id >= ?", filter.prefix.map(SQLiteValue.text))
        // Behind all that an id can have.
        require("id < ?", filter.prefix.map { .text("\($0)~") })
        if let states = filter.state.map(LibraryEntry.State.shown(as:)) {
            conditions.append(Self.condition(states))
        }
        if let place {
            conditions.append("(started, id) < (?, ?)")
            values += [.integer(place.started), .text(place.id)]
        }
        var places: [Place] = []
        try Statement(
            """
            SELECT started, id FROM entry WHERE \(conditions.joined(separator: " AND "))
            ORDER BY started DESC, id DESC LIMIT \(count)
            """, in: database
        ).rows(values) { places.append(Place(started: $0.integer(0), id: $0.text(1) ?? "")) }
        return places
    }

    private static func condition(_ states: [LibraryEntry.State]) -> String {
        // As the index of these has it.
        if states == [.recording] { return "state = 'recording'" }
        return "state IN (\(states.map { "'\($0.rawValue)'" }.joined(separator: ", ")))"
    }

    /// Bytes of the entries of each user, as they say.
    func usage() throws(SQLiteError) -> [(uid: UInt32, bytes: Int64)] {
        var users: [(UInt32, Int64)] = []
        // Sums of whole numbers fail beyond 64 bits, and one entry may say anything.
        try Statement("SELECT user, total(bytes) FROM entry WHERE user IS NOT NULL GROUP BY user", in: database).rows {
            guard let uid = UInt32(exactly: $0.integer(0)) else { return }
            users.append((uid, $0.integer(1)))
        }
        return users
    }

    /// Entries that can't be read, in the order of the alphabet, and why.
    func problems() throws(SQLiteError) -> [(id: String, why: String)] {
        var problems: [(String, String)] = []
        try Statement("SELECT id, problem FROM entry WHERE problem IS NOT NULL ORDER BY id", in: database).rows {
            problems.append(($0.text(0) ?? "", $0.text(1) ?? ""))
        }
        return problems
    }
}

extension IndexTable.Line {
    /// From `problem` on.
    fileprivate var values: [SQLiteValue] {
        guard let entry else { return [.text(problem ?? "")] + Array(repeating: .null, count: 8) }
        let devices = (entry.devices + [entry.microphone].compactMap(\.self)).flatMap { [$0.device, $0.uniqueID] }
        return [
            .null, .integer(entry.started), .text(entry.kind.rawValue), .text(entry.state.rawValue),
            .integer(Int64(entry.owner.uid)), SQLiteValue(entry.take), SQLiteValue(entry.photo?.uniqueID),
            .text("\n\(devices.joined(separator: "\n"))\n"), .integer(entry.bytes),
        ]
    }
}

extension CaptureLibrary.Stamp {
    /// No file's: what has it is looked at again.
    fileprivate static let unknown = Self(device: -1, inode: -1, changed: -1, size: -1)

    fileprivate init(_ row: borrowing Statement.Row, _ column: Int32) {
        self.init(
            device: row.integer(column), inode: row.integer(column + 1), changed: row.integer(column + 2),
            size: row.integer(column + 3))
    }

    fileprivate var values: [SQLiteValue] { [device, inode, changed, size].map(SQLiteValue.integer) }
}

extension LibraryEntry.State {
    /// What may be shown so, depending on the file and on who makes it.
    fileprivate static func shown(as state: String) -> [Self] {
        switch state {
        case "recording": [.recording]
        // A photo that has its name is whole.
        case "finished": [.finished, .recording]
        case "recovered": [.recovered]
        case "damaged": [.damaged, .recording]
        default: allCases
        }
    }
}
