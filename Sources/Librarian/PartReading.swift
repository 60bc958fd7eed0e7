import BusProtocol
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import LinuxIO

extension Librarian {
    /// How often a part is read that was written to meanwhile.
    private static let attempts = 3

    /// Writes a part of a file to a descriptor.
    ///
    /// - Throws: `entryNotFound`, also for a file that isn't there, or another in its place; `recordingInProgress`;
    ///   `pathNotAllowed` for a file that lies elsewhere than in the library: who had it put there has it.
    func read(_ part: LibrarianRequest.Part, _ uid: UInt32?, to output: Int32) throws(BusError) -> JSONValue {
        let entry = try find(part.id, uid)
        guard !entry.isUnfinishedTake else { throw .entryNotFound(part.id) }
        if entry.state == .recording, isBeingMade(entry) { throw .isBeingMade(part.id) }
        guard case (let path?, let identity?)? = entry.file(of: part.file) else {
            throw .fileNotFound(part.id, part.file)
        }
        guard library.contains(path) else { throw notGivenOut(path) }
        let copied: (bytes: Int, state: FileState)
        do throws(SystemError) {
            guard let file = try HeldFolder(of: path, library: library).open(identity) else {
                throw SystemError(code: ENOENT, operation: "open", subject: path)
            }
            copied = try copy(part, of: file, to: output)
        } catch {
            // What is no plain file, or lies behind a link, is not what was made there.
            let isAbsent = [ENOENT, ENOTDIR, ELOOP, EINVAL].contains(error.code)
            throw isAbsent ? .fileNotFound(part.id, part.file) : .cannotBeRead(path, error)
        }
        return [
            "id": .string(part.id), "file": .string(part.file),
            "name": .string(path.split(separator: "/").last.map(String.init) ?? ""),
            "size": .integer(copied.state.size), "offset": .integer(part.offset),
            "revision": .string(copied.state.revision), "state": shown(entry)["state"] ?? .null,
            "bytes": JSONValue(copied.bytes),
        ]
    }

    // All of it of one state: what was written to while it was read is read again.
    private func copy(
        _ part: LibrarianRequest.Part, of file: HeldFile, to output: Int32
    ) throws(SystemError) -> (bytes: Int, state: FileState) {
        var before = try FileState(file.rawValue)
        for _ in 0..<Self.attempts {
            let count = Int(min(Int64(part.length), max(0, before.size - part.offset)))
            let bytes = try copy(count, at: part.offset, of: file.rawValue, to: output)
            let after = try FileState(file.rawValue)
            if after == before, bytes == count { return (bytes, before) }
            before = after
        }
        throw SystemError(code: EBUSY, operation: "read", subject: "a file that is being written to")
    }

    private func copy(
        _ count: Int, at offset: Int64, of file: Int32, to output: Int32
    ) throws(SystemError) -> Int {
        guard count > 0 else { return 0 }
        _ = try check("lseek") { lseek(output, 0, SEEK_SET) }
        var (position, done) = (off_t(offset), 0)
        while done < count {
            // The kernel copies, without the bytes passing through here.
            let sent = try check("sendfile") { sendfile(output, file, &position, count - done) }
            if sent == 0 { break }
            done += sent
        }
        return done
    }

    private func notGivenOut(_ path: String) -> BusError {
        BusError(
            .pathNotAllowed,
            "\(path.prefix(256)) is outside of the library's folder and can't be read through the bus; open it at that "
                + "path.",
            ["roots": [.string(library.directory)]])
    }
}

/// What of an open file tells whether it was changed.
private struct FileState: Equatable {
    var size: Int64
    var inode: UInt64
    /// When it was last written to, nanoseconds since 1970.
    var modified: Int64

    init(_ descriptor: Int32) throws(SystemError) {
        var status = stat()
        try check("fstat") { fstat(descriptor, &status) }
        size = Int64(status.st_size)
        inode = UInt64(status.st_ino)
        modified = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
    }

    var revision: String {
        [inode, UInt64(bitPattern: modified), UInt64(bitPattern: size)].map { String($0, radix: 36) }
            .joined(separator: "-")
    }
}

extension LibraryEntry {
    /// The file that a member names, and which it is.
    fileprivate func file(of member: String) -> (path: String?, identity: FileIdentity?)? {
        switch member {
        case "path": (path, file)
        case "sideCar": (sideCar, sideCarFile)
        case "cover": (cover, coverFile)
        case "movie": (movie, movieFile)
        default: nil
        }
    }
}

extension BusError {
    fileprivate static func fileNotFound(_ id: String, _ file: String) -> BusError {
        BusError(
            .entryNotFound, "The entry '\(id)' has no such file, or it was removed: '\(file)'.",
            ["id": .string(id), "file": .string(file)])
    }

    fileprivate static func cannotBeRead(_ path: String, _ error: SystemError) -> BusError {
        BusError(.internalError, "\(path) can't be read: \(error).")
    }
}
