import LinuxIO

extension Loop {
    private static let second: Int64 = 1_000_000_000

    /// Calls the handler once a second from now on, as long as it answers true.
    public func eachSecond(_ handler: @escaping () -> Bool) { beat(at: MonotonicClock.now() + Self.second, handler) }

    private func beat(at time: Int64, _ handler: @escaping () -> Bool) {
        schedule(at: time) { [weak self] in
            guard handler() else { return }
            // From when it was due, so that the beat doesn't drift; unless it has fallen behind.
            self?.beat(at: max(time, MonotonicClock.now() - Self.second / 2) + Self.second, handler)
        }
    }
}
