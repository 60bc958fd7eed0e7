import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing

/// Who may read what is in the library.
@Suite struct LibraryAccessTests {
    private let scratch: TemporaryDirectory
    private let directory: String

    init() throws {
        scratch = try TemporaryDirectory()
        directory = "\(scratch.path)/outer/library"
    }

    private func modes(isShared: Bool) -> [String] {
        FileModes.others(
            below: directory, files: isShared ? 0o640 : 0o600, folders: isShared ? 0o750 : 0o700, except: ["index."])
    }

    /// A library with a photo, a live photo, and a file in a deep folder.
    private static func fill(_ library: CaptureLibrary) throws {
        try library.makeFolder(for: "\(library.directory)/2026-11-22/deep/a.mp4")
        _ = try library.store(.photo("aa11", in: library), [1, 2, 3])
        let source = "\(library.directory)-live.mov"
        try File.replace(source, with: [4, 5], mode: 0o644)
        var live = LibraryEntry.photo("bb22", in: library)
        live.movie = "\(library.directory)/2026-11-22/bb22.mov"
        _ = try library.store(live, [6], movie: try LivePhotoFile(source, size: 2))
        let unfinished = try NewPhoto(.photo("cc33", in: library), size: 1, in: library)
        try unfinished.write([7])
        withExtendedLifetime(unfinished) {}
    }

    @Test(arguments: [0, 0o027, 0o077] as [UInt32], [false, true])
    func onlyThoseForWhomItIsReadIt(umask: UInt32, isShared: Bool) throws {
        let library = try FileModes.withUmask(umask) { [directory] in
            let library = try CaptureLibrary(directory, isShared: isShared)
            try Self.fill(library)
            return library
        }
        #expect(modes(isShared: isShared) == [])
        #expect(FileModes.mode("\(scratch.path)/outer") & 0o007 == 0)
        #expect(library.mode(of: "\(directory)/2026-11-22/a.mp4") == (isShared ? 0o640 : 0o600))
        #expect(library.mode(of: "/srv/movies/a.mp4") == nil)
    }

    @Test func aFolderThatOthersReadIsShutBeforeAnythingIsStored() throws {
        mkdir("\(scratch.path)/outer", 0o755)
        mkdir(directory, 0o755)
        _ = try CaptureLibrary(directory, isMade: false)
        #expect(FileModes.mode(directory) == 0o755, "who only looks changes nothing")
        _ = try CaptureLibrary(directory)
        #expect(FileModes.mode(directory) == 0o700)
    }

    @Test func whatIsThereIsShutAndOpened() throws {
        try Self.fill(try CaptureLibrary(directory, isShared: true))
        try File.replace("\(directory)/index.sqlite3", with: [1], mode: 0o600)
        try File.replace("\(scratch.path)/outside", with: [1], mode: 0o644)
        symlink("\(scratch.path)/outside", "\(directory)/2026-11-22/link.mp4")
        symlink(scratch.path, "\(directory)/way-out")
        mkfifo("\(directory)/pipe", 0o622)
        let own = try CaptureLibrary(directory, isMade: false)
        let first = try own.applyAccess()
        #expect(first.changed > 6 && first.foreign == 0)
        unlink("\(directory)/pipe")
        #expect(modes(isShared: false) == [])
        let shared = try CaptureLibrary(directory, isShared: true, isMade: false)
        #expect(try shared.applyAccess().changed == first.changed)
        #expect(modes(isShared: true) == [])
        #expect(FileModes.mode("\(directory)/index.sqlite3") == 0o600, "it has everybody's entries")
        #expect(FileModes.mode("\(scratch.path)/outside") == 0o644)
        #expect(try shared.applyAccess().changed == 0)
    }

    /// Of what was begun, the outer folder and that of the entries show that it was not brought to its end.
    @Test func whatWasInterruptedIsBroughtToItsEnd() throws {
        try Self.fill(try CaptureLibrary(directory, isShared: true))
        let own = try CaptureLibrary(directory, isMade: false)
        chmod(directory, 0o700)
        #expect(try own.applyAccess().changed > 0)
        #expect(modes(isShared: false) == [])
        chmod("\(directory)/entries", 0o750)
        let shared = try CaptureLibrary(directory, isShared: true, isMade: false)
        #expect(try shared.applyAccess().changed > 0)
        #expect(modes(isShared: true) == [])
    }

    @Test func aLibraryThatIsNotThereIsNoError() throws {
        let none = try CaptureLibrary(directory, isMade: false).applyAccess()
        #expect(none.changed == 0 && none.foreign == 0)
    }

    @Test(.enabled(if: geteuid() == 0, "left out: only root can give files to others"))
    func whatIsAnotherUsersIsCountedAndStays() throws {
        let library = try CaptureLibrary(directory, isShared: true)
        try Self.fill(library)
        let foreign = "\(directory)/2026-11-22/aa11.jpg"
        chown(foreign, 64_117, 65_534)
        let count = try CaptureLibrary(directory, isMade: false).applyAccess()
        #expect(count.foreign == 1 && FileModes.mode(foreign) == 0o640)
        #expect(modes(isShared: false) == ["2026-11-22/aa11.jpg 640"])
    }
}
