import BusServer
import LinuxIO
import ZeroMQ

/// Reads the subscriptions that arrive at a media socket: as soon as they arrive, or, during a run of frames, just
/// before each frame.
///
/// libzmq wakes a watcher of the socket also when its own thread has taken a message, that is once for each frame. That
/// costs as much as publishing the frame.
final class SubscriptionPoller {
    private let loop: Loop
    private let socket: Socket
    private let read: () -> Void
    /// nil: the socket is polled before each frame.
    private var token: Loop.Token?
    private var timer: Loop.Token?
    private var last: Int64 = 0
    /// Frames that were sent without a longer pause.
    private var run = 0
    private var hasSent = false

    /// The longest time between two polls, nanoseconds: a subscriber waits for the next frame anyway.
    private static let longestInterval: Int64 = 60_000_000
    /// Frames of a run after which the socket is polled and not watched.
    private static let shortestRun = 8
    /// Nanoseconds without a frame after which the socket is watched again.
    private static let patience: Int64 = 250_000_000

    /// - Parameter read: reads the waiting subscriptions.
    init(_ loop: Loop, _ socket: Socket, read: @escaping () -> Void) {
        self.loop = loop
        self.socket = socket
        self.read = read
        listen()
    }

    /// Whether the loop watches the socket.
    var isListening: Bool { token != nil }

    /// Notes that a message is sent.
    func sends() { hasSent = true }

    /// Notes that a frame has arrived, which may be sent.
    func frame(at now: Int64) {
        let isQuick = now - last <= Self.longestInterval
        last = now
        run = isQuick && hasSent ? run + 1 : 0
        hasSent = false
        if isListening {
            if run >= Self.shortestRun { rest() }
        } else if run == 0 {
            listen()
        }
    }

    /// Reads waiting subscriptions, unless the loop watches the socket. Call this before each frame is taken.
    func hear() {
        guard !isListening, socket.readiness().canReceive else { return }
        read()
        // The loop reads the rest, between other work.
        if socket.readiness().canReceive { listen() }
    }

    private func listen() {
        run = 0
        loop.cancel(timer)
        timer = nil
        guard token == nil else { return }
        // Watching begins with a look at what has arrived already.
        token = loop.watch(.socket(socket)) { [weak self] in self?.read() }
    }

    private func rest() {
        loop.cancel(token)
        token = nil
        arm()
    }

    // One timer for all frames until then, not one for each frame.
    private func arm() {
        timer = loop.schedule(at: last + Self.patience) { [weak self] in self?.check() }
    }

    private func check() {
        timer = nil
        if MonotonicClock.now() - last < Self.patience { arm() } else { listen() }
    }
}
