import BusProtocol
import BusServer
import CameraBusTesting
import Glibc
import LinuxIO
import Logging
import Testing
import ZeroMQ

@testable import Gateway

/// Whose keys are let in.
@Suite struct GuestBookTests {
    private let scratch: TemporaryDirectory
    private let loop: Loop
    private let path: String

    init() throws {
        scratch = try TemporaryDirectory()
        loop = try Loop()
        path = "\(scratch.path)/keys"
    }

    private func text(_ entries: (String, Request.Principal.Role, CurveKeyPair)...) throws -> [UInt8] {
        var keys = GuestList()
        for (name, role, pair) in entries {
            try keys.add(GuestList.Entry(role: role, key: pair.publicKey.text, name: name))
        }
        return Array(keys.text.utf8)
    }

    /// What the bus is told: who loses what they have, and what is to be called when it has answered.
    private final class Told {
        var words: [(name: String, told: () -> Void)] = []
        var names: [String] { words.map(\.name).sorted() }

        /// The bus answers all.
        func answer() {
            let words = words
            self.words = []
            for word in words { word.told() }
        }
    }

    private func book(_ told: Told = Told()) -> GuestBook {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let book = GuestBook(
            loop, of: "key", path: path, keptPath: "\(scratch.path)/kept", afterthought: 1, logger: logger,
            source: { [path] in KeysFile.read(path, logger: logger) }, tell: { told.words.append(($0, $1)) })
        book.read()
        return book
    }

    @Test func `a file that others could write lets nobody in, until they can't`() throws {
        try File.replace(path, with: try text(("desk", .view, try CurveKeyPair.make())), mode: 0o644)
        let book = book()
        #expect(book.count == 1)
        for (mode, count) in [(0o664, 0), (0o640, 1), (0o646, 0), (0o600, 1)] {
            // By the change of its mode alone.
            chmod(path, mode_t(mode))
            #expect(try loop.run { book.count == count }, "\(String(mode, radix: 8))")
        }
        try #require(rename(path, "\(path).real") == 0)
        try #require(symlink("\(path).real", path) == 0)
        book.read()
        #expect(book.count == 0)
    }

    @Test func `a file that can't be read cuts all off, and takes nobody's key out`() throws {
        let (desk, laptop) = (try CurveKeyPair.make(), try CurveKeyPair.make())
        let both = try text(("desk", .control, desk), ("laptop", .view, laptop))
        try File.replace(path, with: both, mode: 0o600)
        let told = Told()
        var cut: [Set<String>] = []
        let book = book(told)
        book.onCut = { cut.append(Set($0.map(\.key))) }
        for disturb in [{ _ = unlink(path) }, { try File.replace(path, with: Array("view".utf8), mode: 0o600) }]
            as [() throws -> Void]
        {
            try disturb()
            book.read()
            book.read()
            #expect(book.count == 0 && book[desk.publicKey.text] == nil)
            #expect(book.owner(of: desk.publicKey.text)?.name == "desk")
            #expect(cut == [[desk.publicKey.text, laptop.publicKey.text]] && told.words.isEmpty)
            cut = []
            try File.replace(path, with: both, mode: 0o600)
            book.read()
            #expect(book.count == 2 && book[desk.publicKey.text]?.name == "desk" && told.words.isEmpty)
        }
        // What was taken out meanwhile is news when it is read, and not before.
        unlink(path)
        book.read()
        try File.replace(path, with: try text(("desk", .control, desk)), mode: 0o600)
        book.read()
        #expect(told.names == ["laptop"])
    }

    @Test func `whose key was taken out, or changed, while no gateway ran is told of until it is answered`()
        throws
    {
        let (desk, laptop, phone) = (try CurveKeyPair.make(), try CurveKeyPair.make(), try CurveKeyPair.make())
        try File.replace(
            path, with: try text(("desk", .control, desk), ("laptop", .control, laptop), ("phone", .view, phone)),
            mode: 0o600)
        let first = Told()
        withExtendedLifetime(book(first)) {}
        #expect(first.words.isEmpty)
        try File.replace(path, with: try text(("laptop", .view, laptop), ("phone", .view, phone)), mode: 0o600)
        // The bus doesn't answer the first, and not the afterthought of the second.
        let second = Told()
        withExtendedLifetime(book(second)) {}
        #expect(second.names == ["desk", "laptop"])
        let third = Told()
        let ended = book(third)
        #expect(third.names == ["desk", "laptop"])
        third.answer()
        // Who is let in again, though with less, isn't told of again.
        #expect(try loop.run { third.names == ["desk"] })
        withExtendedLifetime(ended) {}
        let fourth = Told()
        let last = book(fourth)
        #expect(fourth.names == ["desk"])
        fourth.answer()
        #expect(try loop.run { fourth.names == ["desk"] })
        fourth.answer()
        withExtendedLifetime(last) {}
        let fifth = Told()
        withExtendedLifetime(book(fifth)) {}
        #expect(fifth.words.isEmpty)
    }

    @Test func `who isn't in what could be read of a file is let in no more, but not told of`() throws {
        let loop = loop
        let names = ["desk", "laptop", "phone"]
        let keys = Dictionary(uniqueKeysWithValues: try names.map { ($0, try CurveKeyPair.make().publicKey.text) })
        func guest(_ name: String, _ role: Request.Principal.Role = .control) -> GuestList.Entry {
            GuestList.Entry(role: role, key: keys[name] ?? "", name: name)
        }
        var reading = GuestBook.Reading(guests: names.map { guest($0) }, isWhole: true)
        let told = Told()
        let book = GuestBook(
            loop, of: "token", path: path, keptPath: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            source: { reading }, tell: { told.words.append(($0, $1)) })
        book.read()
        var cut: Set<String> = []
        book.onCut = { cut.formUnion($0.map(\.key)) }
        reading = GuestBook.Reading(guests: [guest("laptop", .view), guest("phone")])
        book.read()
        #expect(book.count == 2 && cut == [keys["desk"], keys["laptop"]] && told.names == ["laptop"])
        reading.isWhole = true
        book.read()
        #expect(told.names == ["desk", "laptop"])
    }
}
