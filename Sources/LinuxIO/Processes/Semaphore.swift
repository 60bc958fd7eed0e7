import CLinux
import Glibc

/// Lets threads of our own wait for work without a poll loop (`sem_init(3)`).
public final class Semaphore: @unchecked Sendable {
    // sem_t is made for use by many threads; it only must not move.
    private let semaphore: UnsafeMutablePointer<sem_t>

    public init() {
        semaphore = .allocate(capacity: 1)
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Lets one waiting thread go on, or the next that comes to wait.
    public func signal() { sem_post(semaphore) }

    /// Waits for a ``signal()`` of its own.
    public func wait() { while sem_wait(semaphore) == -1 && errno == EINTR {} }

    /// The same until a time.
    ///
    /// - Parameter deadline: CLOCK_MONOTONIC, nanoseconds.
    /// - Returns: false when the time has come.
    @discardableResult
    public func wait(until deadline: Int64) -> Bool {
        while clinux_semaphore_wait_until(semaphore, max(0, deadline)) == -1 { if errno != EINTR { return false } }
        return true
    }
}
