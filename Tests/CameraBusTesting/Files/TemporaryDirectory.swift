import Glibc

/// A directory under /tmp with a name short enough for Unix sockets in it; removed with all that is in it when this
/// ends.
public final class TemporaryDirectory: Sendable {
    public let path: String

    public init() throws {
        var template = Array("/tmp/cb-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestingError("mkdtemp: \(String(cString: strerror(errno)))") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { remove() }

    /// Removes it now.
    public func remove() { Self.remove(path) }

    /// The files in it, by their paths within it.
    public func contents() -> [String] { Self.contents(path, prefix: "") }

    private static func entries(_ path: String) -> [(name: String, isDirectory: Bool)] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var entries: [(String, Bool)] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name == "." || name == ".." { continue }
            entries.append((name, entry.pointee.d_type == UInt8(DT_DIR)))
        }
        return entries
    }

    private static func contents(_ path: String, prefix: String) -> [String] {
        entries(path).flatMap { entry in
            entry.isDirectory
                ? contents("\(path)/\(entry.name)", prefix: "\(prefix)\(entry.name)/") : [prefix + entry.name]
        }.sorted()
    }

    /// Removes a directory with all that is in it.
    static func remove(_ path: String) {
        for entry in entries(path) {
            let inner = "\(path)/\(entry.name)"
            if entry.isDirectory { remove(inner) } else { unlink(inner) }
        }
        rmdir(path)
    }
}

/// Why a test could not be carried out.
public struct TestingError: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }
}
