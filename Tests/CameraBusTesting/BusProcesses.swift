import BusProtocol
import LinuxIO

extension BusHarness {
    /// The pids of this bus's processes of that program: `camerabus-recorder`.
    public func pids(of program: String) -> [Int32] {
        Leaks(directory: directory.path, sharedMemoryBefore: []).processIDs.filter { pid in
            guard let line = try? File.read("/proc/\(pid)/cmdline", limit: 1 << 16) else { return false }
            return String(decoding: line.prefix { $0 != 0 }, as: UTF8.self).hasSuffix(program)
        }
    }
}
