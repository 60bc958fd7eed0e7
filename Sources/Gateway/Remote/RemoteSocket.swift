import BusProtocol
import ZeroMQ

/// A socket for other machines: encrypted, and only for keys that the ZAP handler accepts.
final class RemoteSocket {
    let socket: Socket
    /// Reports its connections (``ConnectionRegistry``).
    let monitor: Socket
    let port: Int

    /// Milliseconds in which a peer has to show its key: there and back three times, over a slow link.
    private static let handshake = 2000
    /// Milliseconds between signs of life, and after which a peer without any is gone.
    private static let heartbeat = 2000
    private static let silence = 6000
    /// Bytes that the kernel holds for a peer that is slow: what lies there is of the past already when it is taken.
    private static let sendBuffer = 256 << 10

    /// - Parameters:
    ///   - waiting: messages that wait for a peer at most.
    ///   - maximumMessageBytes: of one frame of a peer's; who sends more is disconnected.
    init(
        _ context: Context, _ kind: Socket.Kind, _ address: TCPAddress, _ authenticator: TCPAddress.Door,
        secretKey: CurveKey,
        waiting: Int, maximumMessageBytes: Int
    ) throws(ZeroMQError) {
        port = address.port + authenticator.rawValue
        socket = try Socket(context, kind)
        try socket.set(.sendHighWaterMark, waiting)
        try socket.set(.receiveHighWaterMark, 64)
        try socket.setMaximumMessageBytes(maximumMessageBytes)
        try socket.setCurveServer(secretKey)
        try socket.setAuthenticationDomain("\(authenticator)")
        try socket.set(.handshakeInterval, Self.handshake)
        try socket.set(.heartbeatInterval, Self.heartbeat)
        try socket.set(.heartbeatTimeout, Self.silence)
        try socket.set(.tcpMaximumRetransmission, Self.silence)
        try socket.set(.sendBuffer, Self.sendBuffer)
        if address.isIPv6 { try socket.set(.ipv6, 1) }
        if kind == .router { try socket.set(.routerMandatory, 1) }
        if kind == .extendedPublish {
            try socket.set(.xpubVerboser, 1)
            try socket.setWelcomeMessage(Topic.welcome.bytes)
        }
        let events = "inproc://monitor/\(authenticator)"
        try socket.startMonitor(at: events, events: [.accepted, .closed, .disconnected])
        monitor = try Socket(context, .pair)
        // A flood of connections must not lose an event: an unseen one would never be counted out again.
        try monitor.set(.receiveHighWaterMark, 0)
        try monitor.connect(events)
        try socket.bind(address.endpoint(authenticator))
    }

    /// Sends a message to one of a router's connections.
    ///
    /// - Returns: false: it takes no more now, or has gone.
    func send(to routing: [UInt8], _ head: [[UInt8]], _ frames: [Message]) -> Bool {
        // In a row of messages libzmq looks only now and then at what peers have taken; asking for the events makes it
        // look.
        _ = socket.readiness()
        guard (try? socket.send(routing, more: true)) == true else { return false }
        do throws(ZeroMQError) {
            // Once its first frame is taken, all of a message is.
            var left = head.count + frames.count
            for part in head {
                left -= 1
                try socket.send(part, more: left > 0)
            }
            for frame in frames {
                left -= 1
                try socket.send(frame, more: left > 0)
            }
            return true
        } catch {
            // What is begun has to end: else the next message would be the rest of it.
            _ = try? socket.send([UInt8]())
            return false
        }
    }
}
