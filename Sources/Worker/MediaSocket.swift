import BusProtocol
import BusServer
import ZeroMQ

/// The XPUB socket of a device: who subscribes to what comes in, frames go out.
///
/// What a slow subscriber does not take is thrown away for it alone, by libzmq, beyond two messages for each rendition.
final class MediaSocket {
    let server: ServerSocket
    private let incoming = Message()
    private let outgoing = Message()
    /// Somebody has subscribed to a topic.
    var onSubscribe: (([UInt8]) -> Void)?
    /// The last subscriber of a topic has gone.
    var onUnsubscribe: (([UInt8]) -> Void)?

    /// Frames of one topic that wait for a slow subscriber.
    private static let messagesPerRendition = 2
    /// Messages from subscribers that are read before frames have their turn again.
    private static let messagesPerTurn = 64
    /// Bytes of a message from a subscriber: a topic, and the byte before it.
    private static let maximumMessageBytes = 4096

    init(_ context: Context, _ loop: Loop, path: String, mode: UInt32, group: UInt32?) throws(ServerError) {
        server = try ServerSocket(
            context,
            ServerSocket.Options(
                kind: .extendedPublish, path: path, mode: mode, group: group,
                sendHighWaterMark: Self.messagesPerRendition,
                receiveHighWaterMark: 1000, maximumMessageBytes: Self.maximumMessageBytes,
                authenticationDomain: "media", welcome: Topic.welcome.bytes))
        loop.watch(.socket(server.socket)) { [weak self] in self?.read() }
    }

    /// How many renditions are published: one subscriber may take them all, each with two messages.
    func setRenditions(_ count: Int) throws(ZeroMQError) {
        try server.socket.set(.sendHighWaterMark, Self.messagesPerRendition * max(1, count))
    }

    /// Sends what is small: heartbeats, errors, barriers.
    func publish(topic: [UInt8], _ header: [UInt8]) throws(ZeroMQError) {
        learnWhatWasTaken()
        try server.socket.send(topic, more: true)
        try server.socket.send(header)
    }

    /// Sends a frame. The payload's bytes are shared with libzmq, which lets go of them when they are sent.
    func publish(topic: [UInt8], header: FrameHeaderWriter, payload: Message) throws(ZeroMQError) {
        learnWhatWasTaken()
        try outgoing.share(payload)
        try server.socket.send(topic, more: true)
        try server.socket.send(header.bytes, more: true)
        try server.socket.send(outgoing)
    }

    // libzmq looks once in a millisecond at most at what subscribers have taken; within a burst it would think that they have
    // taken nothing, and throw away what there is room for. Asking for the socket's events makes it look.
    private func learnWhatWasTaken() { _ = server.socket.readiness() }

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
