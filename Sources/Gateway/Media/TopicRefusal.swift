/// An error for a requested topic. It is sent once a second at most, as on the bus's own sockets: a client that takes
/// the error for a message asks again at once.
struct TopicRefusal {
    /// Nanoseconds from one refusal to the next.
    static let interval: Int64 = 1_000_000_000

    /// Messages that it has asked for since it was told last.
    private(set) var asks = 0
    private(set) var takesRaw = false
    /// nil: never, as nobody knows yet whether it may.
    private var lastTold: Int64?

    /// It is told now, in monotonic nanoseconds.
    init(at now: Int64) { lastTold = now }

    private init() { lastTold = nil }

    /// Nothing is told: whether it may have the topic shows later.
    static let undecided = TopicRefusal()

    var isUndecided: Bool { lastTold == nil }

    /// When it may have another answer; nil: when that is decided.
    var due: Int64? { lastTold.map { $0 + Self.interval } }

    mutating func ask(raw: Bool) {
        asks = min(asks + 1, Viewer.maximumCredit)
        takesRaw = raw
    }

    /// It is told again, which answers one of its asks.
    mutating func told(at now: Int64) {
        asks = max(0, asks - 1)
        lastTold = now
    }
}
