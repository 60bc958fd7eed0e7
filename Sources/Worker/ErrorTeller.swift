import BusProtocol
import BusServer
import ZeroMQ

/// Tells subscribers why they get no frames, on their own topics.
///
/// One message at a time with a little distance: a subscriber of many refused topics would lose most of a burst, since
/// libzmq keeps only a few messages for it.
final class ErrorTeller {
    private let device: String
    private let loop: Loop
    private let socket: MediaSocket
    private var waiting: [(topic: SubscriptionTable.Subscribed, error: BusError)] = []
    private var isWaiting = false
    /// The socket can't be used any more.
    var onFailure: ((ZeroMQError) -> Void)?

    /// Milliseconds from one message to the next.
    private static let distance: Int64 = 2

    init(device: String, _ loop: Loop, _ socket: MediaSocket) {
        self.device = device
        self.loop = loop
        self.socket = socket
    }

    /// One that has just subscribed.
    func tell(_ topic: SubscriptionTable.Subscribed, _ error: BusError) {
        guard !waiting.contains(where: { $0.topic == topic }) else { return }
        waiting.append((topic, error))
        next()
    }

    /// All of them: to be called once a second. A round that is not done yet is not begun anew.
    func tell(_ all: [(topic: SubscriptionTable.Subscribed, error: BusError)]) {
        guard waiting.isEmpty else { return }
        waiting = all.reversed()
        next()
    }

    private func next() {
        guard !isWaiting, !waiting.isEmpty else { return }
        isWaiting = true
        loop.schedule(afterMilliseconds: Self.distance) { [weak self] in
            guard let self else { return }
            isWaiting = false
            guard let (topic, error) = waiting.popLast() else { return }
            do throws(ZeroMQError) {
                try socket.publish(
                    topic: topic.topic, Announcement.failure(device: device, rendition: topic.text, error: error))
            } catch {
                onFailure?(error)
            }
            next()
        }
    }
}
