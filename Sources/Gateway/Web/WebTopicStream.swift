import BusProtocol
import ZeroMQ

/// One topic for one connection, message by message: how somebody without a WebSocket watches a camera.
final class WebTap: Sendable {
    let outbox = Outbox(maximumBytes: 1 << 20, maximumCount: 4)
    private let desk: WebDesk
    private let topic: [UInt8]
    private let peer: MediaDesk.Peer

    private init(_ desk: WebDesk, _ topic: [UInt8], _ peer: MediaDesk.Peer) {
        self.desk = desk
        self.topic = topic
        self.peer = peer
    }

    /// - Parameter owner: who watches.
    static func open(_ desk: WebDesk, topic: [UInt8], owner: String) async -> WebTap {
        await desk.mailbox.ask { tell in
            // The way ends with the tap, which holds what it needs.
            let outbox = Box()
            let peer = desk.media.open(
                MediaDesk.Way(
                    owner: owner, allowsRaw: false, hasRoom: { outbox.outbox?.hasRoomForMedia ?? false },
                    send: { _, frames in
                        guard let frames = try? frames.map({ try $0.shared() }) else { return false }
                        return outbox.outbox?.put(Outgoing(head: [], frames: frames, isMedia: true)) ?? false
                    }))
            let tap = WebTap(desk, topic, peer)
            outbox.outbox = tap.outbox
            tell(tap)
        }
    }

    /// The next message: of now, or the first that comes; its header first. nil: none comes any more.
    func next() async -> Outgoing? {
        desk.mailbox.post { [self] in desk.media.take(MediaAsk(.next, topic: topic), of: peer) }
        return await outbox.next()
    }

    /// That is written.
    func wrote(_ outgoing: Outgoing) { outbox.wrote(outgoing) }

    /// Whoever waits is told; harmless once more.
    func close() {
        outbox.end()
        desk.mailbox.post { [self] in desk.media.close(peer) }
    }

    private final class Box { var outbox: Outbox? }
}
