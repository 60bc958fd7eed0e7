import Glibc
public import LinuxIO

/// A tree of files that a test makes up, such as a machine's sysfs. All paths are those within the directory.
extension TemporaryDirectory {
    /// Makes a directory, and all that it lies in.
    public func makeDirectory(_ directory: some StringProtocol) {
        var built = path
        for part in directory.split(separator: "/") {
            built += "/\(part)"
            mkdir(built, 0o755)
        }
    }

    /// Makes a file with what it lies in; replaces one that is there.
    public func write(_ file: String, _ text: String) throws(SystemError) {
        makeDirectory(Self.parent(file))
        try File.replace("\(path)/\(file)", with: Array(text.utf8), mode: 0o644)
    }

    /// Makes a symbolic link with what it lies in.
    ///
    /// - Parameter target: as the link says it.
    public func link(_ file: String, to target: String) throws(SystemError) {
        makeDirectory(Self.parent(file))
        try check("symlink", file) { symlink(target, "\(path)/\(file)") }
    }

    /// Removes a file, a link, or a directory with all that is in it.
    public func remove(_ name: String) {
        if unlink("\(path)/\(name)") != 0 { Self.remove("\(path)/\(name)") }
    }

    private static func parent(_ file: String) -> Substring { file[..<(file.lastIndex(of: "/") ?? file.startIndex)] }
}
