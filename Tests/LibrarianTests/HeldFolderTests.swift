import CameraBusTesting
import Glibc
import LinuxIO
import Testing

@testable import Librarian

/// The kernel compares names byte for byte.
@Suite struct HeldFolderTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    @Test func aLinkOfTheSameLettersIsALink() throws {
        let (real, link) = ("\(scratch.path)/cam\u{E9}ra", "\(scratch.path)/came\u{301}ra")
        #expect(mkdir(real, 0o700) == 0 && symlink(real, link) == 0)
        _ = try HeldFolder(of: "\(real)/a.mp4", below: nil)
        _ = try HeldFolder(of: "\(link)/a.mp4", below: link)
        #expect(throws: SystemError(code: ELOOP, operation: "open", subject: link)) {
            _ = try HeldFolder(of: "\(link)/a.mp4", below: nil)
        }
    }

    @Test func aMarkBehindASlashIsOfTheName() throws {
        let folder = "\(scratch.path)/folder"
        #expect(mkdir(folder, 0o700) == 0)
        let path = "\(folder)/\u{301}a.mp4"
        try File.replace(path, with: [1, 2, 3], mode: 0o600)
        #expect(try HeldFolder(of: path, below: nil).size() == 3)
        // A link on the way is none of the name.
        #expect(symlink(folder, "\(scratch.path)/link") == 0)
        #expect(throws: SystemError.self) { _ = try HeldFolder(of: "\(scratch.path)/link/\u{301}a.mp4", below: nil) }
    }
}
