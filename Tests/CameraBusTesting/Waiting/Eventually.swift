/// Asks again and again until the condition holds, and fails when it doesn't by the deadline.
///
/// It asks every 10 ms, and less often on a slow machine. That is only for what sends no event: what another program
/// has written so far, a counter of `bus.metrics`, a file. State and frames are waited for by their messages
/// (``BusHarness/wait(for:by:until:)``, ``FrameReader``), ends of processes by their descriptors
/// (``RunningProgram/end(by:)``).
///
/// - Parameter isolation: the caller's, so that the condition may use what is not sendable.
public func eventually(
    by deadline: Deadline = .usual, isolation: isolated (any Actor)? = #isolation, file: String = #fileID,
    line: Int = #line,
    _ condition: () async throws -> Bool
) async throws {
    while try await !condition() {
        if deadline.hasPassed { throw TestingError("What was waited for has not come about (\(file):\(line)).") }
        // Leaves the machine to those who are waited for.
        try await Task.sleep(for: .milliseconds(Int(10 * Slowness.ofProcessor)))
    }
}
