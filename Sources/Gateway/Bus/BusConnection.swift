import BusProtocol
import BusServer
import ZeroMQ

/// A connection to the command socket of the bus. It sends nothing while there is no bus, so no request is carried out
/// long after it was made.
final class BusConnection {
    private let loop: Loop
    private let socket: Socket
    private let monitor: Socket
    private var tokens: [Loop.Token] = []
    private(set) var isConnected = false
    var onConnected: (() -> Void)?
    /// What was asked, and not answered, never will be.
    var onLost: (() -> Void)?
    /// An answer has come.
    var onMessage: (([Message]) -> Void)?

    /// Of an answer: 100 photos of each of 16 cameras, and what stands before them.
    private static let maximumFrames = 2048
    private static let messagesPerTurn = 16

    /// - Parameter maximumMessageBytes: of a frame of an answer.
    init(_ place: BusEndpoints, maximumMessageBytes: Int) throws(ZeroMQError) {
        loop = place.loop
        socket = try Socket(place.context, .dealer)
        try socket.set(.immediate, 1)
        try socket.setMaximumMessageBytes(maximumMessageBytes)
        try socket.set(.reconnectInterval, 100)
        let events = "inproc://line/\(place.nextLine())"
        try socket.startMonitor(at: events, events: [.handshakeSucceeded, .disconnected])
        monitor = try Socket(place.context, .pair)
        try monitor.connect(events)
        tokens.append(loop.watch(.socket(monitor)) { [weak self] in self?.readMonitor() })
        tokens.append(loop.watch(.socket(socket)) { [weak self] in self?.read() })
        try socket.connect(RuntimeDirectory.endpoint(place.directory.commandSocket))
    }

    deinit {
        // What the loop still has of both it may let go of in any order.
        socket.stopMonitor()
        for token in tokens { loop.cancel(token) }
    }

    /// - Returns: false when there is no bus, or it doesn't read; nothing was sent.
    func send(_ frames: [[UInt8]]) -> Bool {
        guard isConnected else { return false }
        // Reading the readiness makes libzmq look for a connection that it has not told the socket of yet.
        _ = socket.readiness()
        return (try? socket.send(frames: frames)) == true
    }

    private func readMonitor() {
        while let frames = try? monitor.receive() {
            switch MonitorEvent(frames)?.kind {
            case .handshakeSucceeded:
                isConnected = true
                onConnected?()
            case .disconnected:
                guard isConnected else { continue }
                // What came before the end still counts.
                read()
                isConnected = false
                onLost?()
            default: break
            }
        }
    }

    private func read() {
        for _ in 0..<Self.messagesPerTurn {
            guard let frames = try? socket.receive(maximumFrames: Self.maximumFrames) else { return }
            onMessage?(frames)
        }
    }
}
