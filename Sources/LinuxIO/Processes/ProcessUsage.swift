import Glibc

/// What this process has cost so far.
public enum ProcessUsage {
    /// Processor time of all its threads, nanoseconds (`CLOCK_PROCESS_CPUTIME_ID`); 0 where the kernel doesn't tell.
    public static var processorTime: Int64 {
        var time = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return 0 }
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Memory that is in use now, bytes, with what it shares with others (resident); nil where it can't be read.
    public static var residentBytes: Int64? { residentBytes(of: CurrentProcess.pid) }

    /// The same of another process (`/proc/PID/statm`).
    public static func residentBytes(of pid: Int32) -> Int64? {
        guard let text = try? File.read("/proc/\(pid)/statm", limit: 256) else { return nil }
        let fields = String(decoding: text, as: UTF8.self).split(separator: " ")
        guard fields.count > 1, let pages = Int64(fields[1]) else { return nil }
        let (bytes, overflow) = pages.multipliedReportingOverflow(by: Int64(sysconf(Int32(_SC_PAGESIZE))))
        return overflow ? nil : bytes
    }
}
