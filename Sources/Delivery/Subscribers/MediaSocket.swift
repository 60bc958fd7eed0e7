package import BusProtocol
package import BusServer
package import LinuxIO
package import ZeroMQ

/// The XPUB socket of a device or rig: subscriptions come in, frames go out.
///
/// libzmq keeps a few messages for a slow subscriber, and drops further ones for that subscriber alone.
package final class MediaSocket {
    package let server: ServerSocket
    private let connections: ConnectionGuard
    private var table = SubscriberTable()
    private var counter = SubscriptionCounter()
    private var stalls = StallDetector()
    private var poller: SubscriptionPoller?
    /// The user of each connection that has subscribed: also when it has ended, until its topics are removed.
    private var users: [Int32: UInt32] = [:]
    private let incoming = Message()
    private let outgoing = Message()
    /// Called for each barrier, with why subscriptions of its connection are refused, if they are.
    package var onBarrier: ((_ topic: [UInt8], BusError?) -> Void)?
    /// Called for each subscription that is refused because its connection has too many.
    package var onRefused: ((_ topic: [UInt8], _ uid: UInt32, BusError) -> Void)?
    /// Called for each subscription of a client, whether or not the topic has others already.
    package var onSubscribe: ((_ topic: [UInt8], _ client: RenditionClient, _ isFirst: Bool) -> Void)?
    /// Called when a client no longer subscribes to a topic.
    package var onUnsubscribe: ((_ topic: [UInt8], _ client: RenditionClient) -> Void)?

    /// Frames that wait for a slow subscriber.
    package static let waitingFrames = 2
    /// Messages from subscribers that are read in one turn of the loop.
    private static let messagesPerTurn = 64
    private static let barrier = Array("ack/".utf8)
    /// Bytes of a message from a subscriber: a topic, and the byte before it.
    private static let maximumMessageBytes = 1024

    /// - Parameter waitingMessages: messages that wait for a slow subscriber at most. Do not change this later: libzmq
    ///   4.3.4 crashes when the change coincides with the end of a connection.
    package init(
        _ context: Context, _ loop: Loop, _ connections: ConnectionGuard, path: String, mode: UInt32, group: UInt32?,
        waitingMessages: Int = MediaSocket.waitingFrames, inherited: InheritedSockets = InheritedSockets()
    ) throws(ServerError) {
        self.connections = connections
        server = try ServerSocket(
            context,
            ServerSocket.Options(
                kind: .extendedPublish, path: path, mode: mode, group: group, sendHighWaterMark: waitingMessages,
                receiveHighWaterMark: ServerSocket.waitingSubscriptions, maximumMessageBytes: Self.maximumMessageBytes,
                authenticationDomain: "media", welcome: Topic.welcome.bytes), inherited: inherited)
        connections.add(server)
        connections.onClosed = { [weak self] connection in
            guard let self else { return }
            counter.closed(connection)
            unsubscribed(table.close(connection), by: connection)
            users[connection] = nil
        }
        poller = SubscriptionPoller(loop, server.socket) { [weak self] in self?.read() }
    }

    /// Whether subscriptions are read as soon as they arrive. If not, call ``hear()`` before each frame.
    package var isListening: Bool { poller?.isListening ?? true }

    /// Reads waiting subscriptions, unless the loop does; the wanted renditions may change.
    package func hear() { poller?.hear() }

    /// Notes that a frame has arrived, which may be published.
    package func frame(at now: Int64) { poller?.frame(at: now) }

    /// Connections that were cut off because their subscriber read too little.
    package private(set) var cut: UInt64 = 0
    private var lastRefused: UInt64 = 0

    /// Cuts off stalled subscribers (``StallDetector``) while memory is short. Call this with every frame before it is
    /// published, when subscribers that keep up have read the previous one.
    package func relieve(_ memory: PayloadMemory, at now: Int64) {
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

    /// Subscriptions that were ignored because a connection had too many.
    package var ignored: UInt64 { table.ignored }

    /// The topics of each connection.
    package var subscriptions: [(peer: ConnectionGuard.Peer, topics: Set<[UInt8]>)] {
        table.subscriptions.compactMap { connection, topics in
            connections.peer(of: connection).map { ($0, topics) }
        }
    }

    /// The users who subscribe to a topic.
    func users(of topic: [UInt8]) -> Set<UInt32> { Set(table.holders(of: topic).map { client($0).uid }) }

    /// Sends a small message: a heartbeat, an error, a barrier.
    package func publish(topic: [UInt8], _ header: [UInt8]) throws(ZeroMQError) {
        updateRoom()
        try server.socket.send(topic, more: true)
        try server.socket.send(header)
    }

    /// Sends a frame's header without its pixels.
    package func publish(topic: [UInt8], header: FrameHeaderWriter) throws(ZeroMQError) {
        try publish(topic: topic, header.bytes)
    }

    /// Sends a frame. The payload's bytes are shared with libzmq, which releases them after sending.
    package func publish(topic: [UInt8], header: FrameHeaderWriter, payload: Message) throws(ZeroMQError) {
        try publish(topic: topic, header.bytes, payload: payload)
    }

    /// Sends a header with its payload, likewise.
    package func publish(topic: [UInt8], _ header: [UInt8], payload: Message) throws(ZeroMQError) {
        updateRoom()
        try outgoing.share(payload)
        try server.socket.send(topic, more: true)
        try server.socket.send(header, more: true)
        try server.socket.send(outgoing)
    }

    /// Sends one header with several payloads, whose bytes are shared with libzmq likewise.
    package func publish(topic: [UInt8], _ header: [UInt8], payloads: [Message]) throws(ZeroMQError) {
        updateRoom()
        try server.socket.send(topic, more: true)
        try server.socket.send(header, more: !payloads.isEmpty)
        for (index, payload) in payloads.enumerated() {
            try outgoing.share(payload)
            try server.socket.send(outgoing, more: index < payloads.count - 1)
        }
    }

    // libzmq checks at most once a millisecond what subscribers have read. Within a burst it would assume that they
    // have read nothing, and drop messages although there is room. Asking for the socket's events makes it check.
    private func updateRoom() {
        _ = server.socket.readiness()
        poller?.sends()
    }

    private func read() {
        for _ in 0..<Self.messagesPerTurn {
            guard (try? server.socket.receive(into: incoming)) == true else { return }
            let bytes = incoming.bytes
            let topic = Array(bytes.dropFirst())
            let connection = incoming.connection
            // A descriptor's number may belong to a new connection: the end of the old one is handled first.
            connections.update()
            if let connection, connections.isLate(incoming, from: connection) { continue }
            switch (bytes.first, connection) {
            case (1, let connection?):
                switch counter.subscribed(connection, bytes) {
                case .accepted: subscribed(topic, connection)
                case .refused: refused(topic, connection)
                case .excessive: connections.cutOff(connection, for: .subscriptions)
                }
            case (0, let connection?):
                if !counter.unsubscribed(connection, bytes) { connections.cutOff(connection, for: .unsubscriptions) }
                if table.unsubscribe(topic, by: connection) { unsubscribed([topic], by: connection) }
            case (0, nil):
                for (connection, topics) in table.sweep(topic, isOpen: { connections.isOpen($0) }) {
                    unsubscribed(topics, by: connection)
                    users[connection] = nil
                }
            case (_, let connection?): connections.cutOff(connection, for: .noSubscription)
            default: break
            }
        }
    }

    private func refused(_ topic: [UInt8], _ connection: Int32) {
        guard let error = counter.refusal(connection) else { return }
        if isBarrier(topic) { onBarrier?(topic, error) } else { onRefused?(topic, client(connection).uid, error) }
    }

    // A barrier is answered each time and not remembered.
    private func isBarrier(_ topic: [UInt8]) -> Bool {
        guard topic.starts(with: Self.barrier), case .ack = Topic.parse(topic) else { return false }
        return true
    }

    private func subscribed(_ topic: [UInt8], _ connection: Int32) {
        if let uid = connections.peer(of: connection)?.uid { users[connection] = uid }
        let client = client(connection)
        if isBarrier(topic) {
            onBarrier?(topic, nil)
            return
        }
        switch table.subscribe(topic, by: connection) {
        case .first: onSubscribe?(topic, client, true)
        case .further: onSubscribe?(topic, client, false)
        case .repeated, .ignored: break
        }
    }

    private func unsubscribed(_ topics: [[UInt8]], by connection: Int32) {
        for topic in topics { onUnsubscribe?(topic, client(connection)) }
    }

    // The kernel could not say whose a connection is that ended at once: that user has the least share.
    private func client(_ connection: Int32) -> RenditionClient {
        RenditionClient(.subscriber(connection), uid: users[connection] ?? .max)
    }
}
