import CLinux
import Glibc

/// The monotonic clock that all times of this project are told in (`CLOCK_MONOTONIC`).
public enum MonotonicClock {
    /// Nanoseconds.
    @inline(__always)
    public static func now() -> Int64 { read(CLOCK_MONOTONIC) }

    /// Nanoseconds since 1970 (`CLOCK_REALTIME`).
    public static func realtime() -> Int64 { read(CLOCK_REALTIME) }

    /// What ``realtime()`` was at a time of ``now()``, by how far apart the two are at present.
    @inline(__always)
    public static func realtime(of time: Int64) -> Int64 { time &+ (realtime() &- now()) }

    @inline(__always)
    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// Wakes a poll loop from another thread (`eventfd(2)`).
public final class EventDescriptor: Sendable {
    private let owner: FileDescriptor
    public var rawValue: Int32 { owner.rawValue }

    public init() throws(SystemError) { owner = FileDescriptor(owning: try check("eventfd") { clinux_eventfd() }) }

    /// Makes the descriptor readable. Never blocks; many signals before a drain are one.
    public func signal() {
        var one: UInt64 = 1
        _ = write(rawValue, &one, 8)
    }

    /// Makes it unreadable again, and says whether it was readable.
    @discardableResult
    public func drain() -> Bool {
        var count: UInt64 = 0
        return read(rawValue, &count, 8) == 8
    }
}

/// Wakes a poll loop at a time (`timerfd_create(2)` on CLOCK_MONOTONIC).
public final class TimerDescriptor: Sendable {
    private let owner: FileDescriptor
    public var rawValue: Int32 { owner.rawValue }

    public init() throws(SystemError) {
        owner = FileDescriptor(owning: try check("timerfd_create") { clinux_timerfd() })
    }

    /// Readable from that time on (nanoseconds, monotonic; a time gone by: at once), and again after each interval if
    /// there is one.
    public func arm(at time: Int64, every interval: Int64 = 0) {
        _ = clinux_timerfd_settime(rawValue, max(1, time), max(0, interval))
    }

    public func disarm() { _ = clinux_timerfd_settime(rawValue, 0, 0) }

    /// How many times it has gone off since the last call.
    @discardableResult
    public func drain() -> UInt64 {
        var count: UInt64 = 0
        return read(rawValue, &count, 8) == 8 ? count : 0
    }
}

/// Reads signals in a poll loop (`signalfd(2)`). To be made on the first thread, before any other is started.
public final class SignalDescriptor: Sendable {
    private let owner: FileDescriptor
    public var rawValue: Int32 { owner.rawValue }

    public init(_ signals: [Int32]) throws(SystemError) {
        owner = FileDescriptor(owning: try check("signalfd") { clinux_signalfd(signals, Int32(signals.count)) })
    }

    /// The next signal that came, if any.
    public func next() -> Int32? {
        let signal = clinux_signalfd_read(rawValue)
        return signal > 0 ? signal : nil
    }
}
