import BusServer

/// Reports lost sound: the first loss at once, and later ones once a second, as a machine that is too slow loses sound
/// some hundreds of times a second.
final class OverrunReporter {
    private let loop: Loop
    private let count: () -> UInt64
    private let tell: () -> Void
    private var timer: Loop.Token?

    /// From one report to the next, milliseconds.
    private static let period: Int64 = 1000

    /// - Parameters:
    ///   - count: returns how often sound was lost so far.
    ///   - tell: reports it.
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
