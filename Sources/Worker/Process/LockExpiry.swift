import BusServer

/// Forgets the lock of a coordinator that has ended: the next one orders its locks right after the hello. A lock that
/// is not ordered then has ended while there was no coordinator.
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

    /// A coordinator has connected.
    func connected() {
        guard let fence = known() else { return }
        loop.cancel(timer)
        timer = loop.schedule(afterMilliseconds: milliseconds) { [weak self] in
            if let self, known() == fence { forget() }
        }
    }

    /// The coordinator has ordered its lock.
    func told() {
        loop.cancel(timer)
        timer = nil
    }
}
