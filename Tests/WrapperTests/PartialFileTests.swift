import CameraBusTesting
import Glibc
import Testing

@testable import LinuxIO

/// Files that get their names when they are whole.
@Suite struct PartialFileTests {
    private let folder: TemporaryDirectory
    private var path: String { "\(folder.path)/a" }
    private var part: String { "\(path).m.part" }

    init() throws { folder = try TemporaryDirectory() }

    private func code(_ body: () throws(SystemError) -> Void) -> Int32? {
        do throws(SystemError) {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    private func add(_ file: PartialFile, _ text: String, at offset: Int64) throws -> Bool {
        try Array(text.utf8).withUnsafeBytes { bytes throws(SystemError) in try file.add(bytes, at: offset) }
    }

    @Test func `only a file of one's own is gone on with`() throws {
        let opening = { () throws(SystemError) in _ = try PartialFile(path, mark: "m", maximum: 100) }
        try File.replace("\(folder.path)/other", with: [1], mode: 0o600)
        #expect(symlink("\(folder.path)/other", part) == 0 && code(opening) == ELOOP)
        File.remove(part)
        #expect(mkfifo(part, 0o600) == 0 && code(opening) == EINVAL)
        File.remove(part)
        try File.replace(part, with: [1, 2], mode: 0o600)
        #expect(code(opening) == nil)
        if geteuid() == 0 { #expect(chown(part, 1, 1) == 0 && code(opening) == EPERM) }
    }

    @Test func `what is there is compared, and what is not is added`() throws {
        do {
            let file = try PartialFile(path, mark: "m", maximum: 100)
            #expect(try add(file, "hello", at: 0) && file.count == 5)
        }
        let file = try PartialFile(path, mark: "m", maximum: 100)
        #expect(try !add(file, "lo?", at: 2) && file.count == 5)
        #expect(try add(file, "lo", at: 3) && add(file, "o you", at: 4) && file.count == 9)
        #expect(code { () throws(SystemError) in _ = try PartialFile(path, mark: "m", maximum: 100) } == EWOULDBLOCK)
        try file.publish(replaces: false)
        #expect(try File.read(path, limit: 100) == Array("hello you".utf8))
        #expect(access(part, F_OK) != 0)
    }

    @Test func `a long name has room for its mark`() throws {
        let long = "\(folder.path)/" + String(repeating: "é", count: 120)
        let file = try PartialFile(long, mark: String(repeating: "m", count: 64), maximum: 100)
        #expect(file.temporary.utf8.count <= folder.path.utf8.count + 1 + 255)
        try file.publish(replaces: false)
        #expect(access(long, F_OK) == 0)
    }

    // As on file systems that neither rename without replacing nor have links.
    @Test func `a name is taken in two steps, too, and from nobody`() throws {
        try File.replace(part, with: [1], mode: 0o600)
        try File.takeName(path, for: part)
        #expect(try File.read(path, limit: 10) == [1])
        try File.replace(part, with: [2], mode: 0o600)
        #expect(code { () throws(SystemError) in try File.takeName(path, for: part) } == EEXIST)
        #expect(try File.read(path, limit: 10) == [1])
        #expect(code { () throws(SystemError) in try File.takeName("\(path)2", for: "\(path).none") } == ENOENT)
        #expect(access("\(path)2", F_OK) != 0, "what was taken for nothing is given back")
    }
}
