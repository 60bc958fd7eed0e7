import BusProtocol
import BusServer
import LinuxIO
import ZeroMQ

/// Tells subscribers why they get no frames, on their own topics.
///
/// The first at once, and further ones with a little distance: a subscriber of many refused topics would lose most of a burst,
/// since libzmq keeps only a few messages for it.
final class ErrorTeller {
    typealias Refusal = (topic: SubscriptionTable.Subscribed, error: BusError)

    private let device: String
    private let loop: Loop
    private let socket: MediaSocket
    private var waiting: [SubscriptionTable.Subscribed] = []
    /// Of those that wait.
    private var reasons: [SubscriptionTable.Subscribed: BusError] = [:]
    /// What ``failures(_:)`` was told last.
    private var failing: [SubscriptionTable.Subscribed: BusError] = [:]
    private var lastTime = Int64.min / 2
    private var isWaiting = false
    /// The socket can't be used any more.
    var onFailure: ((ZeroMQError) -> Void)?

    /// Nanoseconds from one message to the next.
    private static let distance: Int64 = 2_000_000

    init(device: String, _ loop: Loop, _ socket: MediaSocket) {
        self.device = device
        self.loop = loop
        self.socket = socket
    }

    /// Somebody has just subscribed to what can't be had.
    func tell(_ topic: SubscriptionTable.Subscribed, _ error: BusError) {
        add(topic, error)
        next()
    }

    /// Somebody else has subscribed: if that is a topic that fails just now, it is told again.
    func tellAgain(_ topic: [UInt8]) {
        guard let (topic, error) = failing.first(where: { $0.key.topic == topic }) else { return }
        tell(topic, error)
    }

    /// All that is wanted and can't be made as things are now: to be called when it may have changed. What is new is told, what is
    /// no longer true isn't told any more.
    func failures(_ all: [Refusal]) {
        guard !all.isEmpty || !failing.isEmpty else { return }
        let before = failing
        failing = Dictionary(all.map { ($0.topic, $0.error) }) { first, _ in first }
        let gone = before.keys.filter { failing[$0] == nil && reasons.removeValue(forKey: $0) != nil }
        if !gone.isEmpty { waiting.removeAll(where: gone.contains) }
        for (topic, error) in failing where before[topic] != error { add(topic, error) }
        next()
    }

    /// All of them: to be called once a second. A round that is not done yet is not begun anew.
    func tell(_ all: [Refusal]) {
        guard waiting.isEmpty else { return }
        for (topic, error) in all { add(topic, error) }
        next()
    }

    private func add(_ topic: SubscriptionTable.Subscribed, _ error: BusError) {
        if reasons.updateValue(error, forKey: topic) == nil { waiting.append(topic) }
    }

    private func next() {
        guard !isWaiting, !waiting.isEmpty else { return }
        let now = MonotonicClock.now()
        guard now < lastTime + Self.distance else { return send(now) }
        isWaiting = true
        loop.schedule(at: lastTime + Self.distance) { [weak self] in
            self?.isWaiting = false
            self?.next()
        }
    }

    private func send(_ now: Int64) {
        // The newest first: whoever has just come knows least.
        guard let topic = waiting.popLast(), let error = reasons.removeValue(forKey: topic) else { return }
        lastTime = now
        do throws(ZeroMQError) {
            try socket.publish(
                topic: topic.topic, Announcement.failure(device: device, rendition: topic.text, error: error))
        } catch {
            onFailure?(error)
        }
        next()
    }
}
