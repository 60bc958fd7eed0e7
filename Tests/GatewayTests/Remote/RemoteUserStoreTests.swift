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
@Suite struct RemoteUserStoreTests {
    private let scratch: TemporaryDirectory
    private let loop: Loop
    private let path: String

    init() throws {
        scratch = try TemporaryDirectory()
        loop = try Loop()
        path = "\(scratch.path)/keys"
    }

    private func text(_ entries: (String, Request.Principal.Role, CurveKeyPair)...) throws -> [UInt8] {
        var keys = RemoteUserList()
        for (name, role, pair) in entries {
            try keys.add(RemoteUserList.Entry(role: role, key: pair.publicKey.text, name: name))
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

    private func store(_ told: Told = Told()) -> RemoteUserStore {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let store = RemoteUserStore(
            loop, of: "key", path: path, keptPath: "\(scratch.path)/kept", afterthought: 1, logger: logger,
            source: { [path] in KeysFileReader.read(path, logger: logger) }, tell: { told.words.append(($0, $1)) })
        store.read()
        return store
    }

    @Test func `a file that others could write lets nobody in, until they can't`() throws {
        try File.replace(path, with: try text(("desk", .view, try CurveKeyPair.make())), mode: 0o644)
        let store = store()
        #expect(store.count == 1)
        for (mode, count) in [(0o664, 0), (0o640, 1), (0o646, 0), (0o600, 1)] {
            // By the change of its mode alone.
            chmod(path, mode_t(mode))
            #expect(try loop.run { store.count == count }, "\(String(mode, radix: 8))")
        }
        try #require(rename(path, "\(path).real") == 0)
        try #require(symlink("\(path).real", path) == 0)
        store.read()
        #expect(store.count == 0)
    }

    @Test func `a file that can't be read cuts all off, and takes nobody's key out`() throws {
        let (desk, laptop) = (try CurveKeyPair.make(), try CurveKeyPair.make())
        let both = try text(("desk", .control, desk), ("laptop", .view, laptop))
        try File.replace(path, with: both, mode: 0o600)
        let told = Told()
        var cut: [Set<String>] = []
        let store = store(told)
        store.onCut = { cut.append(Set($0.map(\.key))) }
        for disturb in [{ _ = unlink(path) }, { try File.replace(path, with: Array("view".utf8), mode: 0o600) }]
            as [() throws -> Void]
        {
            try disturb()
            store.read()
            store.read()
            #expect(store.count == 0 && store[desk.publicKey.text] == nil)
            #expect(store.owner(of: desk.publicKey.text)?.name == "desk")
            #expect(cut == [[desk.publicKey.text, laptop.publicKey.text]] && told.words.isEmpty)
            cut = []
            try File.replace(path, with: both, mode: 0o600)
            store.read()
            #expect(store.count == 2 && store[desk.publicKey.text]?.name == "desk" && told.words.isEmpty)
        }
        // What was taken out meanwhile is news when it is read, and not before.
        unlink(path)
        store.read()
        try File.replace(path, with: try text(("desk", .control, desk)), mode: 0o600)
        store.read()
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
        withExtendedLifetime(store(first)) {}
        #expect(first.words.isEmpty)
        try File.replace(path, with: try text(("laptop", .view, laptop), ("phone", .view, phone)), mode: 0o600)
        // The bus doesn't answer the first, and not the afterthought of the second.
        let second = Told()
        withExtendedLifetime(store(second)) {}
        #expect(second.names == ["desk", "laptop"])
        let third = Told()
        let ended = store(third)
        #expect(third.names == ["desk", "laptop"])
        third.answer()
        // Who is let in again, though with less, isn't told of again.
        #expect(try loop.run { third.names == ["desk"] })
        withExtendedLifetime(ended) {}
        let fourth = Told()
        let last = store(fourth)
        #expect(fourth.names == ["desk"])
        fourth.answer()
        #expect(try loop.run { fourth.names == ["desk"] })
        fourth.answer()
        withExtendedLifetime(last) {}
        let fifth = Told()
        withExtendedLifetime(store(fifth)) {}
        #expect(fifth.words.isEmpty)
    }

    @Test func `who isn't in what could be read of a file is let in no more, but not told of`() throws {
        let loop = loop
        let names = ["desk", "laptop", "phone"]
        let keys = Dictionary(uniqueKeysWithValues: try names.map { ($0, try CurveKeyPair.make().publicKey.text) })
        func remoteUser(_ name: String, _ role: Request.Principal.Role = .control) -> RemoteUserList.Entry {
            RemoteUserList.Entry(role: role, key: keys[name] ?? "", name: name)
        }
        var reading = RemoteUserStore.Reading(remoteUsers: names.map { remoteUser($0) }, isWhole: true)
        let told = Told()
        let store = RemoteUserStore(
            loop, of: "token", path: path, keptPath: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            source: { reading }, tell: { told.words.append(($0, $1)) })
        store.read()
        var cut: Set<String> = []
        store.onCut = { cut.formUnion($0.map(\.key)) }
        reading = RemoteUserStore.Reading(remoteUsers: [remoteUser("laptop", .view), remoteUser("phone")])
        store.read()
        #expect(store.count == 2 && cut == [keys["desk"], keys["laptop"]] && told.names == ["laptop"])
        reading.isWhole = true
        store.read()
        #expect(told.names == ["desk", "laptop"])
    }
}
