import Glibc

/// What file systems stamp files with: a clock that stands still between the kernel's ticks, of up to 10 ms.
public enum FileClock {
    /// Waits until what is made from now on has another time than what there is.
    public static func waitForTick() {
        let before = now()
        while now() == before { sched_yield() }
    }

    private static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME_COARSE, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
