public import LinuxIO

/// When the present value of a topic is sent again to who comes later: each at most once in a tenth of a second, so
/// that a crowd of subscribers can't multiply the traffic. What is asked for too soon is sent when it is time.
public final class TopicPacer {
    private let loop: Loop
    private let send: (_ topic: String) -> Void
    private var sent: [String: Int64] = [:]
    private var overdue: Set<String> = []
    private var timer: Loop.Token?

    private static let interval: Int64 = 100_000_000
    /// Topics beyond which what says nothing any more is forgotten at once.
    private static let usualTopics = 8192

    /// - Parameter send: called with what is to be sent later than it was asked for.
    public init(_ loop: Loop, send: @escaping (_ topic: String) -> Void) {
        self.loop = loop
        self.send = send
    }

    deinit { loop.cancel(timer) }

    /// Whether the topic is to be sent now; if not, it is sent when it may be.
    ///
    /// - Parameter now: monotonic nanoseconds.
    public func isTime(for topic: String, at now: Int64 = MonotonicClock.now()) -> Bool {
        guard let last = sent[topic], now - last < Self.interval else {
            if sent.count >= Self.usualTopics { forgetOld(at: now) }
            sent[topic] = now
            return true
        }
        overdue.insert(topic)
        if timer == nil {
            timer = loop.schedule(at: last + Self.interval) { [weak self] in self?.sendOverdue() }
        }
        return false
    }

    /// There is nothing of that topic any more.
    public func forget(_ topic: String) { sent[topic] = nil }

    private func sendOverdue() {
        timer = nil
        let topics = overdue
        overdue = []
        let now = MonotonicClock.now()
        forgetOld(at: now)
        for topic in topics where isTime(for: topic, at: now) { send(topic) }
    }

    private func forgetOld(at now: Int64) { sent = sent.filter { now - $0.value < Self.interval } }
}
