import BusServer

/// Forgets the lock of a coordinator that has gone: the next one tells its locks right after the hello, and one that isn't told then ended
/// while there was no coordinator.
final class LockExpiry {
    private let loop: Loop
    private let milliseconds: Int64
    /// The fence of the lock that is known.
    private let known: () -> UInt64?
    private let forget: () -> Void
    private var timer: Loop.Token?

    init(_ loop: Loop, milliseconds: Int64, known: @escaping () -> UInt64?, forget: @escaping () -> Void) {
        self.loop = loop
        self.milliseconds = milliseconds
        self.known = known
        self.forget = forget
    }

    /// A coordinator has come.
    func connected() {
        guard let fence = known() else { return }
        loop.cancel(timer)
        timer = loop.schedule(afterMilliseconds: milliseconds) { [weak self] in
            if let self, known() == fence { forget() }
        }
    }

    /// It has told its lock.
    func told() {
        loop.cancel(timer)
        timer = nil
    }
}
