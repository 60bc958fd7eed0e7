import CameraBusTesting
import Glibc
import LinuxIO
import Testing

/// Files that are opened by paths of which others may have made parts.
@Suite struct OwnLinks {
    /// The bytes of what is found there.
    private func read(_ path: String) throws(SystemError) -> [UInt8] {
        let file = try FileDescriptor(openingByOwnLinks: path)
        var buffer = [UInt8](repeating: 0, count: 16)
        let count = try check("read") { Glibc.read(file.rawValue, &buffer, buffer.count) }
        return Array(buffer[..<count])
    }

    private func code(_ path: String) -> Int32? {
        do throws(SystemError) {
            _ = try read(path)
            return nil
        } catch { return error.code }
    }

    @Test func `links of our own lead on, relative ones too, and the file itself may be none`() throws {
        let folder = try TemporaryDirectory()
        let (shelf, link) = ("\(folder.path)/shelf", "\(folder.path)/link")
        #expect(mkdir(shelf, 0o700) == 0 && mkdir("\(shelf)/day", 0o700) == 0)
        try File.replace("\(shelf)/day/film", with: [1, 2], mode: 0o600)
        #expect(symlink(shelf, link) == 0 && symlink("../shelf/day", "\(shelf)/today") == 0)
        for path in ["\(shelf)/day/film", "\(link)/day/film", "\(link)/today/film", "\(link)//./day//film"] {
            #expect(try read(path) == [1, 2], "\(path)")
        }
        #expect(symlink("film", "\(shelf)/day/newest") == 0 && symlink("loop", "\(folder.path)/loop") == 0)
        #expect(code("\(shelf)/day/newest") == ELOOP && code("\(folder.path)/loop/film") == ELOOP)
        #expect(code("\(shelf)/day/none") == ENOENT && code("\(shelf)/none/film") == ENOENT)
        #expect(code("\(shelf)/day/film/x") == ENOTDIR && code("film") == EINVAL && code("/") == EISDIR)
        #expect(code("/" + String(repeating: "x", count: 300)) == ENAMETOOLONG)
        #expect(code("/" + String(repeating: "x/", count: 3000)) == ENAMETOOLONG)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can make another user's link"))
    func `another user's link leads nowhere`() throws {
        let folder = try TemporaryDirectory()
        let (secret, link) = ("\(folder.path)/secret", "\(folder.path)/movies")
        #expect(mkdir(secret, 0o700) == 0 && symlink(secret, link) == 0)
        try File.replace("\(secret)/server.key", with: [1], mode: 0o600)
        #expect(try read("\(link)/server.key") == [1])
        #expect(lchown(link, 64_117, 65_534) == 0)
        #expect(code("\(link)/server.key") == ELOOP && code("\(secret)/server.key") == nil)
    }
}
