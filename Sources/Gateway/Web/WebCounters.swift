import Synchronization

/// Counters of the web server since its start.
final class WebCounters: Sendable {
    let connections = Atomic<Int>(0)
    let refusedConnections = Atomic<Int>(0)
    let requests = Atomic<Int>(0)
    /// Answered with a status of 400 or more.
    let refusedRequests = Atomic<Int>(0)
    let sentBytes = Atomic<Int>(0)
    /// WebSockets that were closed because they didn't take what they had asked for.
    let cutSockets = Atomic<Int>(0)
}
