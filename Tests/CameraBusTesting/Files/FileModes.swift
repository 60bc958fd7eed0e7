import Glibc
import LinuxIO

/// Modes of files, and the umask that they are made under.
public enum FileModes {
    /// Of a file or folder; 0: it isn't there.
    public static func mode(_ path: String) -> UInt32 {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    /// The files and folders below a folder, and that folder, whose mode is another one: `entries/a.json 640`.
    ///
    /// - Parameter exceptions: what the names of files begin with that are left out.
    public static func others(
        below folder: String, files: UInt32, folders: UInt32, except exceptions: [String] = []
    ) -> [String] {
        var found: [String] = []
        if mode(folder) != folders { found.append(". \(text(mode(folder)))") }
        look(folder, "", files, folders, exceptions, &found)
        return found.sorted()
    }

    private static func look(
        _ folder: String, _ prefix: String, _ files: UInt32, _ folders: UInt32, _ exceptions: [String],
        _ found: inout [String]
    ) {
        guard let listing = opendir(folder) else { return }
        defer { closedir(listing) }
        while let entry = readdir(listing) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name == "." || name == ".." || exceptions.contains(where: name.hasPrefix) { continue }
            var status = stat()
            guard lstat("\(folder)/\(name)", &status) == 0, status.st_mode & S_IFMT != S_IFLNK else { continue }
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            if status.st_mode & 0o777 != (isFolder ? folders : files) {
                found.append("\(prefix)\(name) \(text(status.st_mode & 0o777))")
            }
            if isFolder { look("\(folder)/\(name)", "\(prefix)\(name)/", files, folders, exceptions, &found) }
        }
    }

    private static func text(_ mode: UInt32) -> String { String(mode, radix: 8) }

    // Written by one thread, and read when that has ended.
    private final class Box<Value>: @unchecked Sendable {
        var result: Result<Value, any Error>?
        init() {}
    }

    /// Does that on a thread that has this umask for itself.
    public static func withUmask<Value: Sendable>(
        _ mask: UInt32, _ body: @escaping @Sendable () throws -> Value
    ) throws -> Value {
        let box = Box<Value>()
        try NamedThread(name: "umask") {
            // What a thread shares with the others of its process is given up for it alone.
            typealias Unshare = @convention(c) (Int32) -> Int32
            let sharesFolderAndMask: Int32 = 0x200
            guard let symbol = dlsym(nil, "unshare"),
                unsafeBitCast(symbol, to: Unshare.self)(sharesFolderAndMask) == 0
            else {
                box.result = .failure(TestingError("a thread can't have an umask of its own here"))
                return
            }
            umask(mask)
            box.result = Result { try body() }
        }.join()
        guard let result = box.result else { throw TestingError("the thread has ended") }
        return try result.get()
    }
}
