import BusProtocol
import BusServer
import ZeroMQ

/// Subscribes to the media socket of a device or a rig, for the topics that a remote client wants.
final class MediaFeed {
    private let loop: Loop
    private let socket: Socket
    private var token: Loop.Token?
    private(set) var topics: Set<[UInt8]> = []
    /// When one of its renditions made room for another one, in monotonic nanoseconds; nil: never.
    var lastTurn: Int64?

    /// Messages that wait here: what a key frame and those on it need.
    private static let waitingMessages = 8
    private static let messagesPerTurn = 16

    /// - Parameter take: called with each message, its topic first.
    init(
        _ place: BusEndpoints, device: String, take: @escaping ([Message]) -> Void
    ) throws(ZeroMQError) {
        loop = place.loop
        let socket = try Socket(place.context, .subscribe)
        try socket.set(.receiveHighWaterMark, Self.waitingMessages)
        try socket.set(.reconnectInterval, 100)
        try socket.connect(RuntimeDirectory.endpoint(place.directory.mediaSocket(device)))
        self.socket = socket
        token = loop.watch(.socket(socket)) {
            for _ in 0..<Self.messagesPerTurn {
                guard let message = try? socket.receive(maximumFrames: Self.maximumFrames) else { return }
                take(message)
            }
        }
    }

    /// Of a set of as many cameras as a rig may have.
    private static let maximumFrames = 80

    deinit { loop.cancel(token) }

    func subscribe(_ topic: [UInt8]) {
        guard topics.insert(topic).inserted else { return }
        try? socket.subscribe(String(decoding: topic, as: UTF8.self))
    }

    func unsubscribe(_ topic: [UInt8]) {
        guard topics.remove(topic) != nil else { return }
        try? socket.unsubscribe(String(decoding: topic, as: UTF8.self))
    }

    /// Has those wait at the bus behind all others, in this order.
    func subscribeAnew(_ topics: [[UInt8]]) {
        for topic in topics { unsubscribe(topic) }
        for topic in topics { subscribe(topic) }
    }
}
