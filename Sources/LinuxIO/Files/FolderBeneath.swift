import CLinux
import Glibc

/// A folder below another one, held open: nobody can lead whoever makes a file in it to another place by a link, before
/// or after.
public final class FolderBeneath: Sendable {
    private let descriptor: FileDescriptor

    /// - Parameters:
    ///   - path: of the folder, absolute: the root's and what is below it.
    ///   - root: to which links may lead; nil: they may lead anywhere.
    /// - Throws: `ELOOP` or `EXDEV` when a link is on the way from the root; `ENOENT`.
    public init(_ path: String, root: String?) throws(SystemError) {
        guard let root else {
            descriptor = try FileDescriptor(opening: path, O_RDONLY | O_DIRECTORY)
            return
        }
        let top = try FileDescriptor(opening: root, O_RDONLY | O_DIRECTORY)
        let rest = path.utf8.dropFirst(root.utf8.count).drop { $0 == UInt8(ascii: "/") }
        let inner = rest.isEmpty ? "." : String(decoding: rest, as: UTF8.self)
        descriptor = FileDescriptor(
            owning: try check("open", path) { clinux_open_folder_beneath(top.rawValue, inner) })
    }

    /// Where it really lies, without links.
    public func realPath() throws(SystemError) -> String {
        let link = "/proc/self/fd/\(descriptor.rawValue)"
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = try check("readlink", link) { readlink(link, &buffer, buffer.count) }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    /// The path of a file in it, as long as this lives.
    public func path(of name: String) -> String { "/proc/self/fd/\(descriptor.rawValue)/\(name)" }
}
