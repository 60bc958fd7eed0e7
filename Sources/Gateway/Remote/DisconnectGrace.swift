import BusServer

/// Gives a remote user, by key or name, a grace period after its last connection ended. Each disconnect starts a new
/// period.
final class DisconnectGrace {
    private let loop: Loop
    private let milliseconds: Int64
    private var timers: [String: Loop.Token] = [:]
    /// Called when a key was away for so long.
    var onOver: ((_ key: String) -> Void)?

    init(_ loop: Loop, milliseconds: Int64) {
        self.loop = loop
        self.milliseconds = milliseconds
    }

    deinit { for token in timers.values { loop.cancel(token) } }

    /// The key has no connection any more.
    func began(_ key: String) {
        loop.cancel(timers[key])
        timers[key] = loop.schedule(afterMilliseconds: milliseconds) { [weak self] in
            guard let self else { return }
            timers[key] = nil
            onOver?(key)
        }
    }

    /// The key has one again.
    func ended(_ key: String) { loop.cancel(timers.removeValue(forKey: key)) }
}
