import BusClient
import BusProtocol
import Glibc
import JSON
import LinuxIO

/// Brings files of the bus's library here: where this user may read them they are copied, else the bus gives them, as it does to other machines.
struct Download {
    let client: Client
    /// For each part that the bus gives.
    let timeout: Duration
    /// A file that is there already makes room.
    let replaces: Bool
    private let isTerminal = isatty(STDERR_FILENO) == 1

    init(_ client: Client, timeout: Duration, replaces: Bool) {
        (self.client, self.timeout, self.replaces) = (client, timeout, replaces)
    }

    /// Whether the paths that the bus tells are of another machine.
    static func isRemote(_ client: Client) -> Bool { client.directory == nil }

    /// What stands for a file of the library: its path, or where that is another machine's the entry's id, and how to have it.
    static func place(of id: String, _ path: String, _ client: Client) -> (text: String, advice: String?) {
        guard isRemote(client) else { return (path, nil) }
        return (id, "It lies in the library of \(client.place.name): 'camerabus library fetch \(id)' brings it here.")
    }

    private func isReadable(_ path: String) -> Bool { !Self.isRemote(client) && access(path, R_OK) == 0 }

    private var isGiven: Bool { client.greeting.features.contains(Feature.libraryRead.rawValue) }

    /// Makes sure that files will be had, before they are made.
    ///
    /// - Parameters:
    ///   - paths: of files as the bus sees them.
    ///   - id: of one of their entries.
    /// - Throws: ``Failure`` when they won't.
    func check(_ paths: [String], of id: String) async throws {
        guard !paths.allSatisfy(isReadable) else { return }
        guard isGiven else { throw MovieFileNames.inaccessible }
        do throws(ClientError) {
            _ = try await client.readLibrary(id, length: 0, timeout: timeout)
        } catch {
            switch error.reason {
            // It is there, and is being made.
            case .recordingInProgress: return
            case .unauthorized: throw MovieFileNames.inaccessible
            default: throw error
            }
        }
    }

    /// Brings a file of an entry here.
    ///
    /// - Parameters:
    ///   - file: the member of the entry that names it.
    ///   - source: where it is, as the bus sees it; nil: the bus is to give it.
    func bring(_ id: String, _ file: String = "path", from source: String?, to path: String) async throws {
        if let source, isReadable(source) { return try AtomicFile.copy(source, to: path, replaces: replaces) }
        guard isGiven else {
            throw Failure(
                status: ExitStatus.refused,
                description:
                    "This bus gives no files out; it may be older than this program ('camerabus status' tells its version)."
            )
        }
        defer { if isTerminal { Output.progress("") } }
        if path == "-" || AtomicFile.isSpecial(path) { return try await pour(id, file, into: path) }
        let isTerminal = isTerminal
        try await client.fetchFromLibrary(id, file: file, to: path, replaces: replaces, timeout: timeout) {
            if isTerminal { Self.tell($0, $1, path) }
        }
    }

    // What is no regular file takes the bytes as they come.
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

    /// What to say where a file of an entry did not come: it is in the library all the same.
    static func way(to id: String, _ path: String) -> String {
        "The movie is whole in the bus's library: \(["camerabus", "library", "fetch", id, "-o", path].shellCommand) brings it, and goes on where this ended."
    }
}
