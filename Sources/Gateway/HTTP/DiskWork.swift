import LinuxIO

/// Runs work that may wait for a disk on a thread of its own, so that it never blocks the few threads that serve all
/// connections.
enum DiskWork {
    /// Does that, and waits for it without a thread. There are no more of them than connections.
    static func run<Value: Sendable>(
        _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) async -> Result<Value, SystemError> {
        await withCheckedContinuation { continuation in
            do throws(SystemError) {
                _ = try NamedThread(name: "disk") {
                    continuation.resume(returning: Result { () throws(SystemError) in try body() })
                }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
}
