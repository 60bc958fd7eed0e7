import Synchronization

/// Decides which of a movie's cameras gives its pictures: one at a time, each picture newer than all before.
final class CameraSwitch: Sendable {
    private struct State {
        var input = 0
        /// The one that may take over.
        var expected = 0
        /// Of the newest picture: monotonic nanoseconds.
        var newest = Int64.min
        /// The one whose turn it is yields up to this time to the one that may take over; nil: it hasn't yet.
        var yieldsUntil: Int64?
    }

    /// For how long one yields at most, in nanoseconds: a camera's pictures don't come later than that.
    static let grace: Int64 = 1_000_000_000

    private let state = Mutex(State())

    /// Puts a picture in, if it is that camera's turn.
    ///
    /// - Returns: nil: another camera has taken over, or is about to.
    func push(_ sample: Sample, _ body: () -> SampleQueue.Outcome) -> SampleQueue.Outcome? {
        state.withLock { state in
            guard state.input == sample.input, state.yieldsUntil.map({ sample.time >= $0 }) ?? true else { return nil }
            let outcome = body()
            if outcome == .taken { state.newest = max(state.newest, sample.time) }
            return outcome
        }
    }

    /// From now on that camera may take over, and no other.
    func expect(_ input: Int) { state.withLock { ($0.expected, $0.yieldsUntil) = (input, nil) } }

    func expects(_ input: Int) -> Bool { state.withLock { $0.expected == input } }

    /// Takes over, if that camera may, and its picture is newer than all before.
    ///
    /// One whose pictures take longer to come than those of the other would be behind it for ever: from its first
    /// picture that is too old on, the other one yields.
    func take(_ input: Int, at time: Int64) -> Bool {
        state.withLock { state in
            guard input == state.expected else { return false }
            guard time > state.newest else {
                if state.yieldsUntil == nil { state.yieldsUntil = state.newest + Self.grace }
                return false
            }
            (state.input, state.yieldsUntil) = (input, nil)
            return true
        }
    }

    func isOf(_ input: Int) -> Bool { state.withLock { $0.input == input } }

    /// Calls the body if it is that camera's turn; no other camera can take over meanwhile.
    func ifOf(_ input: Int, _ body: () -> Void) { state.withLock { if $0.input == input { body() } } }
}
