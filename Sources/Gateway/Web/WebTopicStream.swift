import BusProtocol
import NIOWebSocket
import ZeroMQ

/// One topic for one HTTP connection, message by message: for clients without a WebSocket.
final class WebTopicStream: Sendable {
    let outbox = Outbox(maximumBytes: 1 << 20, maximumCount: 4)
    private let busAccess: WebBusAccess
    private let topic: [UInt8]
    private let peer: MediaDistributor.Peer

    private init(_ busAccess: WebBusAccess, _ topic: [UInt8], _ peer: MediaDistributor.Peer) {
        self.busAccess = busAccess
        self.topic = topic
        self.peer = peer
    }

    static func open(
        _ busAccess: WebBusAccess, topic: [UInt8], for visitor: WebAuthorization.Visitor
    ) async -> WebTopicStream {
        await busAccess.mailbox.ask { tell in
            // The way ends with the tap, which holds what it needs.
            let outbox = Box()
            let peer = busAccess.media.open(
                MediaDistributor.Way(
                    owner: visitor.owner, role: visitor.role, allowsRaw: false,
                    hasRoom: { outbox.outbox?.hasRoomForMedia ?? false },
                    send: { _, frames in
                        guard let frames = try? frames.map({ try $0.shared() }) else { return false }
                        return outbox.outbox?.put(Outgoing(.binary, frames: frames, isMedia: true)) ?? false
                    }))
            let topicStream = WebTopicStream(busAccess, topic, peer)
            outbox.outbox = topicStream.outbox
            tell(topicStream)
        }
    }

    /// The next message: of now, or the first that comes; its header first. nil: none comes any more.
    func next() async -> Outgoing? {
        busAccess.mailbox.post { [self] in busAccess.media.take(MediaAsk(.next, topic: topic), of: peer) }
        return await outbox.next()
    }

    /// That is written.
    func wrote(_ outgoing: Outgoing) { outbox.wrote(outgoing) }

    /// Whoever waits is told; harmless once more.
    func close() {
        outbox.end()
        busAccess.mailbox.post { [self] in busAccess.media.close(peer) }
    }

    private final class Box { var outbox: Outbox? }
}
