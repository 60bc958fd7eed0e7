import BusProtocol
import LinuxIO
import ZeroMQ

/// Requests media from a gateway message by message (``MediaAsk``), so that a slow connection shows the current
/// picture. On the loop's thread.
final class MediaRequester {
    private let socket: Socket
    private let monitor: Socket
    private let topics: [String]
    private let kind: MediaAsk.Kind
    private(set) var isConnected = false
    /// What there was no room for yet, on the present connection.
    private var owed: [[UInt8]] = []

    /// Messages that are asked for ahead: of pictures, and of sound, of which none is to be missing.
    private static let ahead = 2
    private static let aheadOfSound = 8

    /// - Parameter socket: a DEALER, before it is connected.
    init(_ context: Context, _ socket: Socket, topics: [String], takesRaw: Bool) throws(ZeroMQError) {
        self.socket = socket
        self.topics = topics
        kind = takesRaw ? .nextRaw : .next
        // What was asked on a connection that is over counts no more.
        try socket.set(.immediate, 1)
        let events = "inproc://media-\(hexadecimal(randomBytes(8)))"
        try socket.startMonitor(at: events, events: [.handshakeSucceeded, .disconnected])
        monitor = try Socket(context, .pair)
        try monitor.connect(events)
    }

    var source: PollSet.Source { .socket(monitor) }

    /// Asks where there is a new connection.
    ///
    /// - Returns: whether there is.
    func look() -> Bool {
        var isNew = false
        while let frames = try? monitor.receive() {
            // What was asked before goes with the connection, and each begins anew.
            owed = []
            isConnected = MonitorEvent(frames)?.kind == .handshakeSucceeded
            guard isConnected else { continue }
            isNew = true
            for topic in topics {
                let count = topic.hasPrefix("audio/") ? Self.aheadOfSound : Self.ahead
                owed += Array(repeating: MediaAsk(kind, topic: Array(topic.utf8)).bytes, count: count)
            }
        }
        pay()
        return isNew
    }

    /// A message of that topic was taken: one more.
    func taken(_ topic: [UInt8]) {
        owed.append(MediaAsk(kind, topic: topic).bytes)
        pay()
    }

    private func pay() {
        // Reading the readiness makes libzmq take notice of a connection that it has not told the socket of yet.
        while let next = owed.first, socket.readiness().canSend {
            guard (try? socket.send(next)) == true else { return }
            owed.removeFirst()
        }
    }
}
