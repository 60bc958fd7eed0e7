import Glibc
import LinuxIO

/// The machine's files below a root, which tests put elsewhere. Nothing is opened but ordinary files and folders.
struct FileTree: Sendable {
    /// In front of every path; empty for the machine itself.
    let root: String

    func path(_ path: String) -> String { root + path }

    /// A file's text without the line's end; nil if it can't be read.
    func text(_ path: String, limit: Int = 1 << 20) -> String? {
        guard isOrdinary(path), let bytes = bytes(path, limit: limit) else { return nil }
        var text = String(decoding: bytes, as: UTF8.self)
        while let last = text.last, last.isWhitespace || last == "\0" { text.removeLast() }
        return text
    }

    func bytes(_ path: String, limit: Int = 1 << 16) -> [UInt8]? { try? File.read(root + path, limit: limit) }

    func lines(_ path: String, limit: Int = 1 << 22) -> [Substring] {
        text(path, limit: limit)?.split(whereSeparator: \.isNewline) ?? []
    }

    /// Sorted.
    func names(_ path: String) -> [String] { (Directory.names(root + path) ?? []).sorted() }

    func exists(_ path: String) -> Bool { status(path) != nil }

    /// What is behind the path, links followed.
    func status(_ path: String) -> stat? {
        var status = stat()
        return stat(root + path, &status) == 0 ? status : nil
    }

    /// The last part of what a link leads to.
    func linkName(_ path: String) -> String? {
        var target = [UInt8](repeating: 0, count: 4096)
        let count = readlink(root + path, &target, target.count)
        guard count > 0 else { return nil }
        return String(decoding: target[..<count], as: UTF8.self).split(separator: "/").last.map(String.init)
    }

    /// The path with all links resolved, within the root.
    func resolved(_ path: String) -> String? {
        guard let resolved = realpath(root + path, nil) else { return nil }
        defer { free(resolved) }
        let text = String(cString: resolved)
        guard !root.isEmpty, let base = realpath(root, nil) else { return text }
        defer { free(base) }
        let prefix = String(cString: base)
        return text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil
    }

    // A FIFO in place of a file would hold us up for ever.
    private func isOrdinary(_ path: String) -> Bool { status(path).map { $0.st_mode & S_IFMT == S_IFREG } ?? false }
}
