import Glibc

/// How much memory this process may take yet, and what keeps it from taking more.
///
/// A process that goes beyond it is not refused anything: the kernel ends it, or another one, as soon as it touches a
/// page too many. What is known to be large is asked for here first.
public struct MemoryRoom: Hashable, Sendable {
    /// What sets the limit.
    public enum Limit: Hashable, Sendable {
        /// The machine's own memory (`MemAvailable`).
        case machine
        /// A control group's `memory.max` (cgroup v2); its path, such as `/system.slice/camerabusd.service`.
        case group(String)
        /// The process's address space (`RLIMIT_AS`).
        case addressSpace
        /// The size of a file, which shared memory is as well (`RLIMIT_FSIZE`): of each piece, not of all together.
        case fileSize
    }

    public var bytes: UInt64
    public var limit: Limit

    public init(bytes: UInt64, limit: Limit) {
        self.bytes = bytes
        self.limit = limit
    }

    /// The narrowest of all limits, now; nil where none can be read. It reads some files, and is not for each frame.
    ///
    /// - Parameters:
    ///   - processes: where proc(5) is.
    ///   - groups: where the control groups are.
    public static func now(processes: String = "/proc", groups: String = "/sys/fs/cgroup") -> MemoryRoom? {
        var rooms = groupRooms(processes, groups)
        if let room = machineRoom(processes) { rooms.append(room) }
        if let limit = resourceLimit(RLIMIT_AS.rawValue) {
            let used = values("\(processes)/self/statm").first.flatMap { UInt64($0.key) } ?? 0
            let (bytes, overflow) = used.multipliedReportingOverflow(by: UInt64(sysconf(Int32(_SC_PAGESIZE))))
            rooms.append(MemoryRoom(bytes: overflow || bytes > limit ? 0 : limit - bytes, limit: .addressSpace))
        }
        if let limit = resourceLimit(RLIMIT_FSIZE.rawValue) {
            rooms.append(MemoryRoom(bytes: limit, limit: .fileSize))
        }
        return rooms.min { $0.bytes < $1.bytes }
    }

    /// What to do for more.
    public var remedy: String {
        switch limit {
        case .machine: "end what needs most"
        case .group(let path):
            "raise the limit of the control group \(path) (for a service: MemoryMax=; for a container: its --memory)"
        case .addressSpace: "raise the limit of the address space (ulimit -v)"
        case .fileSize: "raise the limit of a file's size, which is that of shared memory too (ulimit -f)"
        }
    }

    // What is in memory only because it was read from a disk goes when others need the room.
    private static let reclaimable: Set<String> = ["inactive_file", "active_file", "slab_reclaimable"]

    /// The control group that the process is in, and those above it.
    private static func groupRooms(_ processes: String, _ groups: String) -> [MemoryRoom] {
        guard let own = lines("\(processes)/self/cgroup").first(where: { $0.hasPrefix("0::/") })?.dropFirst(3) else {
            return []
        }
        var rooms: [MemoryRoom] = []
        var group = String(own)
        // To the root: in a container that is the container's own group. That of the machine has no limit.
        while true {
            let folder = group == "/" ? groups : groups + group
            if let limit = lines("\(folder)/memory.max").first.flatMap({ UInt64($0) }),
                let used = lines("\(folder)/memory.current").first.flatMap({ UInt64($0) })
            {
                let given = values("\(folder)/memory.stat").reduce(UInt64(0)) { sum, value in
                    guard reclaimable.contains(String(value.key)), let bytes = UInt64(value.rest) else { return sum }
                    return sum.addingReportingOverflow(bytes).partialValue
                }
                let taken = used > given ? used - given : 0
                rooms.append(MemoryRoom(bytes: limit > taken ? limit - taken : 0, limit: .group(group)))
            }
            guard group != "/" else { return rooms }
            let parent = group.lastIndex(of: "/").map { String(group[..<$0]) } ?? ""
            group = parent.isEmpty ? "/" : parent
        }
    }

    private static func machineRoom(_ processes: String) -> MemoryRoom? {
        var total: UInt64?
        // Shared memory goes to swap like any other.
        for value in values("\(processes)/meminfo") where value.key == "MemAvailable:" || value.key == "SwapFree:" {
            guard let kilobytes = UInt64(value.rest.prefix { $0.isNumber }) else { continue }
            let bytes = kilobytes.multipliedReportingOverflow(by: 1024)
            let sum = (total ?? 0).addingReportingOverflow(bytes.partialValue)
            total = bytes.overflow || sum.overflow ? .max : sum.partialValue
        }
        return total.map { MemoryRoom(bytes: $0, limit: .machine) }
    }

    private static func resourceLimit(_ resource: UInt32) -> UInt64? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(resource), &limit) == 0, limit.rlim_cur != .max else { return nil }
        return UInt64(limit.rlim_cur)
    }

    private static func values(_ path: String) -> [(key: Substring, rest: Substring)] {
        lines(path).map { line in
            let key = line.prefix { $0 != " " }
            return (key, line[key.endIndex...].drop { $0 == " " })
        }
    }

    private static func lines(_ path: String) -> [Substring] {
        guard let bytes = try? File.read(path, limit: 65536) else { return [] }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    }
}
