import CLinux
import Glibc

/// What becomes of memory that this process has freed (`mallopt(3)`).
public enum ProcessMemory {
    /// Keeps freed memory for the next use, up to so many bytes at a time.
    ///
    /// By default glibc asks the kernel anew for each large block, and every page of it costs a fault: for a process
    /// that frees and allocates a picture of 16 MB thirty times a second that is most of its work.
    public static func keepFreed(bytes: Int) {
        // The largest threshold that glibc takes on 64 bits (DEFAULT_MMAP_THRESHOLD_MAX).
        _ = clinux_mallopt_mmap_threshold(32 << 20)
        _ = clinux_mallopt_trim_threshold(Int32(clamping: bytes))
    }

    /// Bytes of memory that the machine has.
    public static var physicalBytes: Int {
        let (bytes, overflow) = sysconf(Int32(_SC_PHYS_PAGES)).multipliedReportingOverflow(
            by: sysconf(Int32(_SC_PAGESIZE)))
        return overflow ? Int.max : max(0, bytes)
    }

    /// Gives the kernel back what was kept (`malloc_trim(3)`). May take some milliseconds.
    public static func giveBack() { _ = clinux_malloc_trim() }
}
