import CameraBusTesting
import Glibc
import LinuxIO
import SQLite
import Testing

@Suite struct SQLiteTests {
    private let scratch: TemporaryDirectory
    private var path: String { "\(scratch.path)/a.sqlite3" }

    init() throws { scratch = try TemporaryDirectory() }

    private func open(isReadOnly: Bool = false) throws -> Database {
        try Database(path, isReadOnly: isReadOnly, patience: 0)
    }

    private func words(_ database: Database) throws -> [String] {
        var words: [String] = []
        try Statement("SELECT word, number FROM word ORDER BY number DESC", in: database).rows {
            words.append("\($0.text(0) ?? "nil") \($0.integer(1))")
        }
        return words
    }

    private func filled() throws -> Database {
        let database = try open()
        try database.execute("CREATE TABLE word (word TEXT, number INTEGER)")
        let insert = try Statement("INSERT INTO word VALUES (?, ?)", in: database)
        for (word, number) in [("a", 1), ("ü'\u{1F4F7}", 2), ("", 3)] as [(String?, Int64)] {
            try insert.run([SQLiteValue(word), .integer(number)])
        }
        try insert.run([.null, .integer(.max)])
        return database
    }

    private let all = ["nil 9223372036854775807", " 3", "ü'\u{1F4F7} 2", "a 1"]

    @Test func itTellsWhatItWasGiven() throws {
        #expect(try words(filled()) == all)
        #expect(try words(open(isReadOnly: true)) == all, "also when it is opened again")
        let memory = try Database()
        try open().copy(to: memory)
        #expect(try words(memory) == all)
    }

    @Test func aChangeIsWholeOrNothing() throws {
        let database = try filled()
        let error = #expect(throws: SQLiteError.self) {
            try database.transaction { () throws(SQLiteError) in
                try database.execute("DELETE FROM word")
                try database.execute("SELECT nothing")
            }
        }
        #expect(error?.message.contains("nothing") == true && error?.isDamage == false)
        #expect(try words(database) == all)
        try database.transaction { () throws(SQLiteError) in try database.execute("DELETE FROM word") }
        #expect(try words(database) == [])
    }

    @Test func oneChangesAtATime() throws {
        let (first, second) = (try filled(), try open())
        try first.transaction { () throws(SQLiteError) in
            try first.execute("DELETE FROM word")
            #expect(throws: SQLiteError.self) { try second.execute("INSERT INTO word VALUES ('b', 2)") }
        }
        try second.execute("INSERT INTO word VALUES ('b', 2)")
        #expect(try words(first) == ["b 2"])
    }

    @Test func whatIsReadOnlyIsNotChanged() throws {
        #expect(throws: SQLiteError.self) { try open(isReadOnly: true) }
        _ = try filled()
        let database = try open(isReadOnly: true)
        #expect(throws: SQLiteError.self) { try database.execute("DELETE FROM word") }
        #expect(try words(database) == all)
    }

    @Test(arguments: [true, false]) func whateverIsInTheFileIsThrownAway(_ isText: Bool) throws {
        _ = try filled()
        var bytes = try File.read(path, limit: 1 << 20)
        if isText { bytes = Array("no database at all, but long enough to be taken for one\n".utf8) }
        for index in bytes.indices.dropFirst(100) { bytes[index] ^= 0x5A }
        try File.replace(path, with: bytes, mode: 0o600)
        let database = try open()
        let error = #expect(throws: SQLiteError.self) { try words(database) }
        #expect(error?.isDamage == true, "\(String(describing: error))")
        try database.reset()
        try database.execute("CREATE TABLE word (word TEXT, number INTEGER)")
        #expect(try words(database) == [] && words(open()) == [])
    }
}
