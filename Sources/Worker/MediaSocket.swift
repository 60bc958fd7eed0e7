import BusProtocol
import BusServer
import ZeroMQ

/// The XPUB socket of a device: who subscribes to what comes in, frames go out.
///
/// What a slow subscriber does not take is thrown away for it alone, by libzmq, beyond two messages.
final class MediaSocket {
    let server: ServerSocket
    private let incoming = Message()
    private let outgoing = Message()
    /// Somebody has subscribed to a topic.
    var onSubscribe: (([UInt8]) -> Void)?
    /// The last subscriber of a topic has gone.
    var onUnsubscribe: (([UInt8]) -> Void)?

    /// Messages from subscribers that are read before frames have their turn again.
    private static let messagesPerTurn = 64
    /// Bytes of a message from a subscriber: a topic, and the byte before it.
    private static let maximumMessageBytes = 4096

    init(_ context: Context, _ loop: Loop, path: String, mode: UInt32, group: UInt32?) throws(ServerError) {
        server = try ServerSocket(
            context,
            ServerSocket.Options(
                kind: .extendedPublish, path: path, mode: mode, group: group, sendHighWaterMark: 2,
                receiveHighWaterMark: 1000, maximumMessageBytes: Self.maximumMessageBytes,
                authenticationDomain: "media", welcome: Topic.welcome.bytes))
        loop.watch(.socket(server.socket)) { [weak self] in self?.read() }
    }

    /// Sends what is small: heartbeats, errors, barriers.
    func publish(topic: [UInt8], _ header: [UInt8]) throws(ZeroMQError) {
        try server.socket.send(topic, more: true)
        try server.socket.send(header)
    }

    /// Sends a frame. The payload's bytes are shared with libzmq, which lets go of them when they are sent.
    func publish(topic: [UInt8], header: FrameHeaderWriter, payload: Message) throws(ZeroMQError) {
        try outgoing.share(payload)
        try server.socket.send(topic, more: true)
        try server.socket.send(header.bytes, more: true)
        try server.socket.send(outgoing)
    }

    private func read() {
        for _ in 0..<Self.messagesPerTurn {
            guard (try? server.socket.receive(into: incoming)) == true else { return }
            if incoming.hasMore {
                // A subscription is one frame; what an XSUB peer may send beside is nothing to us.
                while incoming.hasMore, (try? server.socket.receive(into: incoming)) == true {}
                continue
            }
            let bytes = incoming.bytes
            guard let kind = bytes.first else { continue }
            switch kind {
            case 1: onSubscribe?(Array(bytes.dropFirst()))
            case 0: onUnsubscribe?(Array(bytes.dropFirst()))
            default: break
            }
        }
    }
}
