import Glibc

/// A process that has a device's node open.
public struct DeviceHolder: Hashable, Sendable {
    public var pid: Int32
    /// The user that it runs as.
    public var uid: UInt32
    /// `/proc/PID/comm`: at most 15 bytes.
    public var name: String

    public init(pid: Int32, uid: UInt32, name: String) {
        self.pid = pid
        self.uid = uid
        self.name = name
    }
}

extension ProcessTable {
    /// What a look through `/proc/*/fd` has brought.
    public struct Holders: Hashable, Sendable {
        /// In the order of their pids.
        public var processes: [DeviceHolder]
        /// false: there are processes whose descriptors we may not see (`CAP_SYS_PTRACE`), and one of them may be another holder.
        public var isComplete: Bool

        public init(processes: [DeviceHolder], isComplete: Bool) {
            self.processes = processes
            self.isComplete = isComplete
        }
    }

    /// Who has the device node open, under whatever path; a node that isn't there has no holders.
    ///
    /// Nothing is opened. It takes some milliseconds on a machine with many processes: not for a loop's thread.
    public static func holders(of path: String) -> Holders {
        var result = Holders(processes: [], isComplete: true)
        var node = stat()
        guard stat(path, &node) == 0, node.st_mode & S_IFMT == S_IFCHR else { return result }
        for entry in Directory.names("/proc") ?? [] {
            guard let pid = Int32(entry) else { continue }
            let directory = "/proc/\(pid)/fd"
            guard let descriptors = Directory.names(directory) else {
                // A process that has just ended hides nothing.
                if errno == EACCES || errno == EPERM { result.isComplete = false }
                continue
            }
            guard descriptors.contains(where: { isOpen($0, in: directory, device: node.st_rdev) }) else { continue }
            var process = stat()
            guard stat("/proc/\(pid)", &process) == 0 else { continue }
            result.processes.append(DeviceHolder(pid: pid, uid: process.st_uid, name: name(of: pid) ?? ""))
        }
        result.processes.sort { $0.pid < $1.pid }
        return result
    }

    private static func isOpen(_ descriptor: String, in directory: String, device: dev_t) -> Bool {
        guard Int32(descriptor) != nil else { return false }
        let path = "\(directory)/\(descriptor)"
        // By its text first: to look at what a link leads to can take for ever, on a file system whose server is gone.
        var target = [UInt8](repeating: 0, count: 512)
        let count = readlink(path, &target, target.count)
        guard count > 0, target.prefix(count).starts(with: "/dev/".utf8) else { return false }
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFCHR && status.st_rdev == device
    }
}

/// A folder's contents.
public enum Directory {
    /// The names of what is in it but `.` and `..`, in no order; nil with `errno` when it can't be read.
    public static func names(_ path: String) -> [String]? {
        guard let stream = opendir(path) else { return nil }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
