import Glibc
import LinuxIO

/// What is left on the machine of a bus that has been stopped.
struct Leaks: CustomStringConvertible {
    var processIDs: [Int32] = []
    var processes: [String] = []
    var sockets: [String] = []
    var sharedMemory: [String] = []

    var isEmpty: Bool { processes.isEmpty && sockets.isEmpty && sharedMemory.isEmpty }

    var description: String {
        var parts: [String] = []
        if !processes.isEmpty { parts.append("processes: \(processes.joined(separator: ", "))") }
        if !sockets.isEmpty { parts.append("sockets: \(sockets.joined(separator: ", "))") }
        if !sharedMemory.isEmpty { parts.append("shared memory: \(sharedMemory.joined(separator: ", "))") }
        return parts.joined(separator: "; ")
    }

    /// Looks for processes with the directory in their command line or environment, sockets in it, and files in
    /// /dev/shm that were not there before.
    init(directory: String, sharedMemoryBefore: Set<String>) {
        for name in Self.names("/proc") {
            guard let pid = Int32(name), pid != CurrentProcess.pid, Self.isRunning(pid) else { continue }
            let command = (try? File.read("/proc/\(pid)/cmdline", limit: 1 << 20)) ?? []
            let environment = (try? File.read("/proc/\(pid)/environ", limit: 1 << 20)) ?? []
            if Self.contains(command + [0] + environment, directory) {
                processIDs.append(pid)
                processes.append("\(pid) (\(ProcessTable.name(of: pid) ?? "?"))")
            }
        }
        sockets = Self.sockets(directory)
        sharedMemory = Self.sharedMemory().subtracting(sharedMemoryBefore).sorted()
    }

    /// Files in /dev/shm that can be ours.
    static func sharedMemory() -> Set<String> { Set(names("/dev/shm").filter { $0.contains("camerabus") }) }

    private static func isRunning(_ pid: Int32) -> Bool {
        guard let text = try? File.read("/proc/\(pid)/stat", limit: 4096) else { return false }
        let fields = String(decoding: text, as: UTF8.self).split(separator: ")").last?.split(separator: " ")
        return fields?.first != "Z"
    }

    private static func contains(_ bytes: [UInt8], _ text: String) -> Bool {
        let part = Array(text.utf8)
        return bytes.indices.contains { start in
            bytes[start] == part.first && bytes[start...].starts(with: part)
        }
    }

    private static func sockets(_ directory: String) -> [String] {
        names(directory).flatMap { name -> [String] in
            let path = "\(directory)/\(name)"
            var status = stat()
            guard lstat(path, &status) == 0 else { return [] }
            switch status.st_mode & S_IFMT {
            case S_IFSOCK: return [path]
            case S_IFDIR: return sockets(path)
            default: return []
            }
        }
    }

    private static func names(_ path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
