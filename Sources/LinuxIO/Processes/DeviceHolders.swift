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
        /// false: there are processes whose descriptors we may not see, and one of them may be another holder.
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
        holders(of: [path])[path] ?? Holders(processes: [], isComplete: true)
    }

    /// The same of several nodes, in one look.
    public static func holders(of paths: [String]) -> [String: Holders] {
        var result: [String: Holders] = [:]
        var nodes: [dev_t: [String]] = [:]
        for path in paths {
            result[path] = Holders(processes: [], isComplete: true)
            var node = stat()
            guard stat(path, &node) == 0, node.st_mode & S_IFMT == S_IFCHR else { continue }
            nodes[node.st_rdev, default: []].append(path)
        }
        guard !nodes.isEmpty else { return result }
        // Where processes of others are hidden altogether (hidepid=), the first one is not there either.
        var isComplete = access("/proc/1", F_OK) == 0
        for entry in Directory.names("/proc") ?? [] {
            guard let pid = Int32(entry) else { continue }
            let directory = "/proc/\(pid)/fd"
            guard let descriptors = Directory.names(directory) else {
                // A process that has just ended hides nothing.
                if errno == EACCES || errno == EPERM { isComplete = false }
                continue
            }
            var devices: Set<dev_t> = []
            for descriptor in descriptors where Int32(descriptor) != nil {
                switch device(descriptor, in: directory) {
                case .device(let number): devices.insert(number)
                case .other: break
                // The folder can be open to us, and what is in it not.
                case .hidden: isComplete = false
                }
            }
            let held = devices.compactMap { nodes[$0] }.joined()
            guard !held.isEmpty, let holder = holder(pid) else { continue }
            for path in held { result[path]?.processes.append(holder) }
        }
        for path in nodes.values.joined() {
            result[path]?.processes.sort { $0.pid < $1.pid }
            result[path]?.isComplete = isComplete
        }
        return result
    }

    private static func holder(_ pid: Int32) -> DeviceHolder? {
        var process = stat()
        guard stat("/proc/\(pid)", &process) == 0 else { return nil }
        return DeviceHolder(pid: pid, uid: process.st_uid, name: name(of: pid) ?? "")
    }

    private enum OpenFile {
        /// A character device below `/dev`.
        case device(dev_t)
        case other
        /// We may not look.
        case hidden
    }

    private static func device(_ descriptor: String, in directory: String) -> OpenFile {
        let path = "\(directory)/\(descriptor)"
        // By its text first: to look at what a link leads to can take for ever, on a file system whose server is gone.
        var target = [UInt8](repeating: 0, count: 512)
        let count = readlink(path, &target, target.count)
        guard count > 0 else { return errno == EACCES || errno == EPERM ? .hidden : .other }
        guard target.prefix(count).starts(with: "/dev/".utf8) else { return .other }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFCHR else { return .other }
        return .device(status.st_rdev)
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
