import BusProtocol
import BusServer
import LinuxIO
import ZeroMQ

/// The XPUB socket of a device: who subscribes to what comes in, frames go out.
///
/// What a slow subscriber does not take is thrown away for it alone, by libzmq, beyond a few messages.
final class MediaSocket {
    let server: ServerSocket
    private let connections: ConnectionGuard
    private var ledger = SubscriberLedger()
    private var counter = SubscriptionCounter()
    private var stalls = StallWatch()
    private var watch: SubscriptionWatch?
    private let incoming = Message()
    private let outgoing = Message()
    /// Somebody has subscribed to a topic that nobody was subscribed to, or to a barrier.
    var onSubscribe: (([UInt8]) -> Void)?
    /// Somebody has subscribed to a topic that others are subscribed to.
    var onFurtherSubscriber: (([UInt8]) -> Void)?
    /// The last subscriber of a topic has gone.
    var onUnsubscribe: (([UInt8]) -> Void)?

    /// Frames that wait for a slow subscriber.
    static let waitingFrames = 2
    /// Messages from subscribers that are read before frames have their turn again.
    private static let messagesPerTurn = 64
    private static let barrier = Array("ack/".utf8)
    /// Bytes of a message from a subscriber: a topic, and the byte before it.
    private static let maximumMessageBytes = 1024

    /// - Parameter waitingMessages: that wait for a slow subscriber at most. Not to be changed later: libzmq 4.3.4 crashes when that
    ///   meets the end of a connection.
    init(
        _ context: Context, _ loop: Loop, _ connections: ConnectionGuard, path: String, mode: UInt32, group: UInt32?,
        waitingMessages: Int = MediaSocket.waitingFrames
    ) throws(ServerError) {
        self.connections = connections
        server = try ServerSocket(
            context,
            ServerSocket.Options(
                kind: .extendedPublish, path: path, mode: mode, group: group, sendHighWaterMark: waitingMessages,
                receiveHighWaterMark: 1000, maximumMessageBytes: Self.maximumMessageBytes,
                authenticationDomain: "media", welcome: Topic.welcome.bytes))
        do throws(ZeroMQError) {
            // Every unsubscription is told, not the last one only: the ledger counts.
            try server.socket.set(.xpubVerboser, 1)
        } catch {
            throw .zeroMQ(error)
        }
        connections.add(server)
        connections.onClosed = { [weak self] connection in
            guard let self else { return }
            counter.closed(connection)
            tellGone(ledger.close(connection))
        }
        watch = SubscriptionWatch(loop, server.socket) { [weak self] in self?.read() }
    }

    /// Whether subscribers are heard whenever they say something; if not, ``hear()`` is to be called before each frame.
    var isListening: Bool { watch?.isListening ?? true }

    /// Hears what subscribers have said, if nobody else does; who wants frames may be others afterwards.
    func hear() { watch?.hear() }

    /// A frame has come, which may be published.
    func frame(at now: Int64) { watch?.frame(at: now) }

    /// Connections that were cut off because their subscriber took too little.
    private(set) var cut: UInt64 = 0
    private var lastRefused: UInt64 = 0

    /// Cuts off the subscribers that do not take what they asked for (``StallWatch``), while memory is short. To be called with every
    /// frame before it is published, when those who keep up have taken the one before.
    func relieve(_ memory: PayloadMemory, at now: Int64) {
        guard memory.isPressed else { return stalls.rest() }
        guard stalls.isDue(at: now) else { return }
        let refused = memory.refused
        let isSpent = refused != lastRefused
        lastRefused = refused
        for connection in stalls.look(connections.unread, at: now, isSpent: isSpent) {
            cut += 1
            connections.cutOff(connection)
        }
    }

    /// Subscriptions that were not taken in because a connection had too many.
    var ignored: UInt64 { ledger.ignored }

    /// Who is subscribed to what, connection by connection.
    var subscriptions: [(peer: ConnectionGuard.Peer, topics: Set<[UInt8]>)] {
        ledger.subscriptions.compactMap { connection, topics in
            connections.peer(of: connection).map { ($0, topics) }
        }
    }

    /// Sends what is small: heartbeats, errors, barriers.
    func publish(topic: [UInt8], _ header: [UInt8]) throws(ZeroMQError) {
        learnWhatWasTaken()
        try server.socket.send(topic, more: true)
        try server.socket.send(header)
    }

    /// Sends what a frame's header says, without its pixels.
    func publish(topic: [UInt8], header: FrameHeaderWriter) throws(ZeroMQError) {
        try publish(topic: topic, header.bytes)
    }

    /// Sends a frame. The payload's bytes are shared with libzmq, which lets go of them when they are sent.
    func publish(topic: [UInt8], header: FrameHeaderWriter, payload: Message) throws(ZeroMQError) {
        try publish(topic: topic, header.bytes, payload: payload)
    }

    /// Sends a header with its payload, likewise.
    func publish(topic: [UInt8], _ header: [UInt8], payload: Message) throws(ZeroMQError) {
        learnWhatWasTaken()
        try outgoing.share(payload)
        try server.socket.send(topic, more: true)
        try server.socket.send(header, more: true)
        try server.socket.send(outgoing)
    }

    /// Sends one header with several payloads, whose bytes are shared with libzmq likewise.
    func publish(topic: [UInt8], _ header: [UInt8], payloads: [Message]) throws(ZeroMQError) {
        learnWhatWasTaken()
        try server.socket.send(topic, more: true)
        try server.socket.send(header, more: !payloads.isEmpty)
        for (index, payload) in payloads.enumerated() {
            try outgoing.share(payload)
            try server.socket.send(outgoing, more: index < payloads.count - 1)
        }
    }

    // libzmq looks once in a millisecond at most at what subscribers have taken; within a burst it would think that they have
    // taken nothing, and throw away what there is room for. Asking for the socket's events makes it look.
    private func learnWhatWasTaken() {
        _ = server.socket.readiness()
        watch?.sends()
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
            let topic = Array(bytes.dropFirst())
            let connection = incoming.connection
            // A descriptor's number may be a new connection's: the end of the old one comes first.
            connections.update()
            switch (kind, connection) {
            case (1, let connection?):
                guard counter.subscribed(connection) else {
                    connections.shutDown(connection)
                    continue
                }
                subscribed(topic, connection)
            case (0, let connection?):
                counter.unsubscribed(connection)
                if ledger.unsubscribe(topic, by: connection) { onUnsubscribe?(topic) }
            case (0, nil): tellGone(ledger.sweep(topic) { connections.isOpen($0) })
            default: break
            }
        }
    }

    private func subscribed(_ topic: [UInt8], _ connection: Int32) {
        // A barrier is answered each time and not kept.
        if topic.starts(with: Self.barrier) {
            onSubscribe?(topic)
            return
        }
        switch ledger.subscribe(topic, by: connection) {
        case .first: onSubscribe?(topic)
        case .further: onFurtherSubscriber?(topic)
        case .repeated, .ignored: break
        }
    }

    private func tellGone(_ topics: [[UInt8]]) {
        for topic in topics { onUnsubscribe?(topic) }
    }
}
