package import BusProtocol
package import BusServer
import LinuxIO
package import ZeroMQ

/// Publishes to subscribers, on their own topics, why they get no frames.
///
/// The first error is sent at once, further ones at short intervals: libzmq keeps only a few messages for a subscriber,
/// and one with many refused topics would lose most of a burst.
package final class ErrorPublisher {
    package typealias Refusal = (topic: SubscribedTopic, error: BusError)

    private let device: String
    private let loop: Loop
    private let socket: MediaSocket
    private var queue = ErrorQueue()
    /// The last argument of ``setFailures(_:)``.
    private var failing: [SubscribedTopic: BusError] = [:]
    private var lastTime = Int64.min / 2
    private var isWaiting = false
    /// Called when the socket has failed for good.
    package var onFailure: ((ZeroMQError) -> Void)?

    /// Nanoseconds from one message to the next.
    private static let distance: Int64 = 2_000_000

    package init(device: String, _ loop: Loop, _ socket: MediaSocket) {
        self.device = device
        self.loop = loop
        self.socket = socket
    }

    /// Publishes the error of a topic that has just been subscribed to and is refused.
    package func publish(_ topic: SubscribedTopic, _ error: BusError) {
        add(topic, error)
        next()
    }

    /// Publishes, once, the error of a user's subscription that is not remembered.
    package func refuse(_ topic: [UInt8], of uid: UInt32, _ error: BusError) {
        guard let topic = SubscribedTopic(topic, of: device) else { return }
        queue.add(topic, error, of: uid)
        next()
    }

    /// Publishes a failing topic's error again, for a further subscriber.
    package func publishAgain(_ topic: [UInt8]) {
        guard let (topic, error) = failing.first(where: { $0.key.topic == topic }) else { return }
        publish(topic, error)
    }

    /// Sets all wanted topics that fail at present. Call this when that may have changed: new errors are published, and
    /// errors that no longer hold are taken out of the queue.
    package func setFailures(_ all: [Refusal]) {
        guard !all.isEmpty || !failing.isEmpty else { return }
        let before = failing
        failing = Dictionary(all.map { ($0.topic, $0.error) }) { first, _ in first }
        for topic in before.keys where failing[topic] == nil { queue.remove(topic) }
        for (topic, error) in failing where before[topic] != error { add(topic, error) }
        next()
    }

    /// Publishes all errors. Call this once a second. While a user's last round is not finished, no new one begins.
    package func publishAll(_ all: [Refusal]) {
        let busy = queue.users
        for (topic, error) in all {
            let uid = user(of: topic)
            if !busy.contains(uid) { queue.add(topic, error, of: uid) }
        }
        next()
    }

    /// Nobody subscribes to the topic any more.
    package func forget(_ topic: [UInt8]) { queue.remove(topic) }

    private func add(_ topic: SubscribedTopic, _ error: BusError) { queue.add(topic, error, of: user(of: topic)) }

    // If a topic has several users, they all get the same error.
    private func user(of topic: SubscribedTopic) -> UInt32 { queue.first(of: socket.users(of: topic.topic)) }

    private func next() {
        guard !isWaiting, !queue.isEmpty else { return }
        let now = MonotonicClock.now()
        guard now < lastTime + Self.distance else { return send(now) }
        isWaiting = true
        loop.schedule(at: lastTime + Self.distance) { [weak self] in
            self?.isWaiting = false
            self?.next()
        }
    }

    private func send(_ now: Int64) {
        guard let (topic, error) = queue.next() else { return }
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
