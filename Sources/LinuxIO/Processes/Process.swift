import CLinux
import Glibc

/// The process that this is.
public enum CurrentProcess {
    public static var pid: Int32 { getpid() }
    /// The calling thread's number (`gettid(2)`).
    public static var threadID: Int32 { clinux_thread_id() }
    public static var uid: UInt32 { geteuid() }
    public static var gid: UInt32 { getegid() }

    public static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// All variables.
    public static func environment() -> [String: String] {
        var variables: [String: String] = [:]
        var entry = clinux_environment()
        while let variable = entry?.pointee {
            let parts = String(cString: variable).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
            entry = entry?.successor()
        }
        return variables
    }

    /// The path of the running program (`/proc/self/exe`).
    public static var executablePath: String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }

    /// Raises the number of descriptors that may be open to what the system allows, and tells it.
    @discardableResult
    public static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }

    /// Raises the number of descriptors that may be open to what the system allows.
    ///
    /// - Parameters:
    ///   - count: so many the process needs to serve at all.
    ///   - program: its name, for the error.
    /// - Throws: ``DescriptorShortage`` where the system allows fewer.
    public static func requireDescriptors(_ count: Int, for program: String) throws(DescriptorShortage) {
        let allowed = raiseDescriptorLimit()
        guard allowed < count else { return }
        throw DescriptorShortage(
            description: "\(program) may open \(allowed) files and sockets, and needs \(count): start it with "
                + "'ulimit -n \(count)' or more, or as a service with LimitNOFILE=\(count)")
    }

    /// Whether the process has that group, as its own or beside it.
    public static func isMember(of group: UInt32) -> Bool {
        if getegid() == group { return true }
        var groups = [gid_t](repeating: 0, count: 1024)
        let count = getgroups(Int32(groups.count), &groups)
        return count > 0 && groups.prefix(Int(count)).contains(group)
    }

    /// Its groups, the own one among them.
    public static var groups: Set<UInt32> {
        let count = getgroups(0, nil)
        guard count > 0 else { return [getegid()] }
        var groups = [gid_t](repeating: 0, count: Int(count))
        let filled = getgroups(count, &groups)
        return Set(groups.prefix(Int(max(0, filled)))).union([getegid()])
    }

    /// The path as it is for processes in other folders, too.
    public static func absolutePath(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return "\(String(cString: folder))/\(path)"
    }

    /// The group's number; nil when there is no group of that name.
    public static func groupID(named name: String) -> UInt32? {
        var entry = group()
        var result: UnsafeMutablePointer<group>?
        var buffer = [CChar](repeating: 0, count: 16384)
        guard getgrnam_r(name, &entry, &buffer, buffer.count, &result) == 0, result != nil else { return nil }
        return entry.gr_gid
    }
}

/// Too few descriptors may be open for a program to serve.
public struct DescriptorShortage: Error, CustomStringConvertible {
    public let description: String
}

/// A folder that only we can have made.
public enum PrivateDirectory {
    /// Makes the folder with that mode, or takes one that is there if it is a real directory (no link), ours, and not
    /// open to more than `mode`.
    public static func make(_ path: String, mode: UInt32, group: UInt32? = nil) throws(SystemError) {
        if mkdir(path, mode) != 0 {
            let code = errno
            guard code == EEXIST else { throw SystemError(code: code, operation: "mkdir", subject: path) }
        }
        var status = stat()
        try check("lstat", path) { lstat(path, &status) }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw SystemError(code: ENOTDIR, operation: "mkdir", subject: path)
        }
        guard status.st_uid == geteuid() else { throw SystemError(code: EPERM, operation: "mkdir", subject: path) }
        if let group { try check("chown", path) { chown(path, uid_t.max, group) } }
        try check("chmod", path) { chmod(path, mode) }
    }
}
