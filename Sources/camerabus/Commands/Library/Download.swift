import BusClient
import BusProtocol
import Glibc
import JSON
import LinuxIO

/// Downloads files of the bus's library. Files that this user may read are copied; others are read through the bus.
struct Download {
    let client: Client
    /// For each part that the bus returns.
    let timeout: Duration
    /// Whether existing files are replaced.
    let replaces: Bool
    private let isTerminal = isatty(STDERR_FILENO) == 1

    init(_ client: Client, timeout: Duration, replaces: Bool) {
        (self.client, self.timeout, self.replaces) = (client, timeout, replaces)
    }

    /// Whether the paths of the bus belong to another machine.
    static func isRemote(_ client: Client) -> Bool { client.directory == nil }

    /// The path of a library file. If this user may not read it there, it is the entry's id, with advice how to get it.
    static func place(of id: String, _ path: String, _ client: Client) -> (text: String, advice: String?) {
        let isBarred = access(path, R_OK) != 0 && [EACCES, EPERM].contains(errno)
        guard isRemote(client) || isBarred else { return (path, nil) }
        let place = isRemote(client) ? client.place.name : "the bus"
        return (id, "It is in the library of \(place). Get it with 'camerabus library fetch \(id)'.")
    }

    /// Whether this user can open the file of that path.
    static func isReadable(_ path: String, _ client: Client) -> Bool {
        !isRemote(client) && access(path, R_OK) == 0
    }

    private func isReadable(_ path: String) -> Bool { Self.isReadable(path, client) }

    private var isGiven: Bool { client.greeting.features.contains(Feature.libraryRead.rawValue) }

    /// Checks before files are made that they can be downloaded.
    ///
    /// - Parameters:
    ///   - paths: of files as the bus sees them.
    ///   - id: of one of their entries.
    /// - Throws: ``Failure`` if they can't.
    func check(_ paths: [String], of id: String) async throws {
        guard !paths.allSatisfy(isReadable) else { return }
        guard isGiven else { throw MovieFileNames.inaccessible }
        do throws(ClientError) {
            _ = try await client.readLibrary(id, length: 0, timeout: timeout)
        } catch {
            switch error.reason {
            // It exists, and is being recorded.
            case .recordingInProgress: return
            case .unauthorized: throw MovieFileNames.inaccessible
            default: throw error
            }
        }
    }

    /// Downloads a file of an entry.
    ///
    /// - Parameters:
    ///   - file: the member of the entry that names it.
    ///   - source: its path for the bus; nil: read it through the bus.
    func fetch(_ id: String, _ file: String = "path", from source: String?, to path: String) async throws {
        if let source, isReadable(source) { return try AtomicFile.copy(source, to: path, replaces: replaces) }
        guard isGiven else {
            throw Failure(
                status: ExitStatus.refused,
                description:
                    "This bus does not support downloads. It may be older than this program; 'camerabus status' shows "
                    + "its version."
            )
        }
        defer { if isTerminal { Output.progress("") } }
        if path == "-" || AtomicFile.isSpecial(path) { return try await pour(id, file, into: path) }
        let isTerminal = isTerminal
        try await client.fetchFromLibrary(id, file: file, to: path, replaces: replaces, timeout: timeout) {
            if isTerminal { Self.tell($0, $1, path) }
        }
    }

    // Writes the bytes directly to a target that is no regular file.
    private func pour(_ id: String, _ file: String, into path: String) async throws {
        let target = path == "-" ? nil : try FileDescriptor(opening: path, O_WRONLY).release()
        defer { if let target { close(target) } }
        try await client.readAllFromLibrary(id, file: file, timeout: timeout) { part in
            try part.bytes.withUnsafeBytes { bytes in
                if let target {
                    try AtomicFile.writeAll(bytes, to: target, path)
                } else {
                    try Output.write(bytes)
                }
            }
        }
    }

    private static func tell(_ done: Int64, _ size: Int64, _ path: String) {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let line = "\(ByteSize.text(done)) of \(ByteSize.text(size))  \(name)"
        Output.progress(String(Table.printable(line).prefix(HelpText.columns - 1)))
    }

    /// The note after a failed download: the file is still in the library.
    static func way(to id: String, _ path: String) -> String {
        "The movie is complete in the library of the bus. To continue the download: "
            + ["camerabus", "library", "fetch", id, "-o", path].shellCommand
    }
}
