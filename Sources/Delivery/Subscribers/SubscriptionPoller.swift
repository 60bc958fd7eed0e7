import BusServer
import LinuxIO
import ZeroMQ

/// When a media socket is looked at for news of its subscribers: whenever libzmq has any, or, while much goes out, each time just before.
///
/// libzmq wakes whoever watches the socket also when its own thread has taken a message away, that is once more for each frame; that
/// costs as much as to publish it.
final class SubscriptionWatch {
    private let loop: Loop
    private let socket: Socket
    private let read: () -> Void
    /// nil: it is looked at with what goes out.
    private var token: Loop.Token?
    private var timer: Loop.Token?
    private var last: Int64 = 0
    /// What went out without a longer pause.
    private var run = 0
    private var hasSent = false

    /// Nanoseconds between two looks that a subscriber may wait for: he waits for the next frame anyway.
    private static let longestInterval: Int64 = 60_000_000
    /// What goes out in a run before libzmq isn't listened to any more.
    private static let shortestRun = 8
    /// Nanoseconds after which libzmq is listened to again when nothing has come.
    private static let patience: Int64 = 250_000_000

    /// - Parameter read: takes what subscribers have said.
    init(_ loop: Loop, _ socket: Socket, read: @escaping () -> Void) {
        self.loop = loop
        self.socket = socket
        self.read = read
        listen()
    }

    /// Whether libzmq's word is waited for.
    var isListening: Bool { token != nil }

    /// Something goes out.
    func sends() { hasSent = true }

    /// A frame has come, which may go out.
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

    /// Hears what there is, if libzmq isn't listened to. To be called before each frame is taken.
    func hear() {
        guard !isListening, socket.readiness().canReceive else { return }
        read()
        // What is too much for one turn is read by the loop, between other work.
        if socket.readiness().canReceive { listen() }
    }

    private func listen() {
        run = 0
        loop.cancel(timer)
        timer = nil
        guard token == nil else { return }
        // Watching begins with a look at what is there.
        token = loop.watch(.socket(socket)) { [weak self] in self?.read() }
    }

    private func rest() {
        loop.cancel(token)
        token = nil
        arm()
    }

    // One timer for all that comes meanwhile, not one a frame.
    private func arm() {
        timer = loop.schedule(at: last + Self.patience) { [weak self] in self?.judge() }
    }

    private func judge() {
        timer = nil
        if MonotonicClock.now() - last < Self.patience { arm() } else { listen() }
    }
}
