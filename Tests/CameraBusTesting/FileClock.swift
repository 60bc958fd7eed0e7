import Glibc

/// What file systems stamp files with.
public enum FileClock {
    /// Waits until what is made from now on has another time than what there is: before Linux 6.13 this clock stands still between the kernel's
    /// ticks, of up to 10 ms, and for the birth of files it still does.
    public static func waitForTick() { usleep(20_000) }
}
