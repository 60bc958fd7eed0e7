import LinuxIO

/// A time by which something has to have happened. Tests wait for the event, and this is what they wait for at most.
public struct Deadline: Sendable {
    /// CLOCK_MONOTONIC, nanoseconds.
    private let start: Int64
    /// How long it is on a quiet machine of today, nanoseconds.
    private let length: Double

    /// No slow machine makes a shorter deadline longer than that, nanoseconds: a failure is to be seen.
    private static let longest = 300_000_000_000.0

    /// - Parameter seconds: generous: a loaded machine must not fail a test. On a slow machine each of them lasts
    ///   longer (``Slowness``).
    public static func after(seconds: Double) -> Deadline {
        Deadline(start: MonotonicClock.now(), length: seconds * 1_000_000_000)
    }

    /// CLOCK_MONOTONIC, nanoseconds. It may be extended when it is reached: see ``hasPassed``.
    public var time: Int64 { time(Slowness.factor) }

    private func time(_ factor: Double) -> Int64 { start + Int64(min(length * factor, max(length, Self.longest))) }

    /// What tests use where nothing else is said: 20 s.
    public static var usual: Deadline { after(seconds: 20) }

    /// Asks how slow the machine is before it says so: a machine may have become slow since.
    public var hasPassed: Bool { MonotonicClock.now() >= time && MonotonicClock.now() >= time(Slowness.measureAgain()) }

    /// Milliseconds that are left, at least 0.
    public var millisecondsLeft: Int { Int(clamping: max(0, (time - MonotonicClock.now() + 999_999) / 1_000_000)) }

    /// Runs the body; cancels it when the time is over.
    ///
    /// - Parameter what: what is waited for, for the error.
    /// - Throws: ``TestingError`` when the time is over, or the body's error.
    public func limit<Value: Sendable>(
        _ what: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                while !hasPassed { try await Task.sleep(for: .milliseconds(max(1, millisecondsLeft))) }
                return nil
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() ?? nil else {
                throw TestingError("Waited in vain for \(what).")
            }
            return value
        }
    }
}
