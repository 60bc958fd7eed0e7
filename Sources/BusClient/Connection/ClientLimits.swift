/// Limits of a client that its parts share. ``Client`` has the public ones.
enum ClientLimits {
    /// Requests that wait for their answers at the same time.
    static let pendingCalls = 512
    /// How long a bus and its workers may be silent before they count as gone.
    static let silenceOfNobody = Duration.seconds(3)
}
