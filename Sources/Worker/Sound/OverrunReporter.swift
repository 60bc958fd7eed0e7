import BusServer

/// Has it be told that sound was lost: the first time at once, and what comes after it together, as a machine that is too slow loses
/// some hundreds of times a second.
final class OverrunReporter {
    private let loop: Loop
    private let count: () -> UInt64
    private let tell: () -> Void
    private var timer: Loop.Token?

    /// From one word to the next, milliseconds.
    private static let period: Int64 = 1000

    /// - Parameters:
    ///   - count: how often sound was lost so far.
    ///   - tell: tells it.
    init(_ loop: Loop, count: @escaping () -> UInt64, tell: @escaping () -> Void) {
        self.loop = loop
        self.count = count
        self.tell = tell
    }

    /// Sound was lost.
    func note() {
        guard timer == nil else { return }
        let told = count()
        tell()
        timer = loop.schedule(afterMilliseconds: Self.period) { [weak self] in
            guard let self else { return }
            timer = nil
            if count() > told { note() }
        }
    }
}
