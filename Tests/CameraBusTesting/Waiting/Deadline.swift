import LinuxIO

/// A time by which something has to have happened. Tests wait for the event, and this is what they wait for at most.
public struct Deadline: Sendable {
    /// CLOCK_MONOTONIC, nanoseconds.
    public let time: Int64

    /// - Parameter seconds: generous: a loaded machine must not fail a test. On a slow machine each of them lasts longer.
    public static func after(seconds: Int64) -> Deadline {
        Deadline(time: MonotonicClock.now() + Int64(Double(seconds) * slowness * 1_000_000_000))
    }

    /// How many times slower than others this machine is, an emulated one: `CAMERABUS_TEST_SLOWNESS`, from 1 to 100.
    public static let slowness = min(
        max(CurrentProcess.environment("CAMERABUS_TEST_SLOWNESS").flatMap(Double.init) ?? 1, 1), 100)

    /// What tests use where nothing else is said: 20 s.
    public static var usual: Deadline { after(seconds: 20) }

    public var hasPassed: Bool { MonotonicClock.now() >= time }

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
                try await Task.sleep(for: .milliseconds(millisecondsLeft))
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
