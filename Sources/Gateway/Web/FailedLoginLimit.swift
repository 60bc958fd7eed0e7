import LinuxIO
import Synchronization

/// Limits how often an address may send an invalid token. After too many it must wait.
final class FailedLoginLimit: Sendable {
    private struct Guesser {
        var bucket: TokenBucket
        var pausesUntil: Int64 = 0
    }

    private let guessers = Mutex<[String: Guesser]>([:])

    private static let maximum = 4096
    private static let perSecond = 5
    private static let atOnce = 20
    /// Nanoseconds.
    private static let pause: Int64 = 1_000_000_000

    /// One more that is none.
    ///
    /// - Parameter now: monotonic nanoseconds.
    /// - Returns: false: there were too many before it.
    func mayBeWrong(_ address: String, at now: Int64 = MonotonicClock.now()) -> Bool {
        guessers.withLock { guessers in
            if guessers[address] == nil, guessers.count >= Self.maximum { guessers = [:] }
            var guesser =
                guessers[address]
                ?? Guesser(bucket: TokenBucket(perSecond: Self.perSecond, burst: Self.atOnce, at: now))
            defer { guessers[address] = guesser }
            guard guesser.pausesUntil <= now else { return false }
            if !guesser.bucket.take(at: now) { guesser.pausesUntil = now + Self.pause }
            return true
        }
    }
}
