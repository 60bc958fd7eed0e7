import Synchronization

/// Which of a movie's cameras gives its pictures: one at a time, each newer than all before.
final class PictureTurn: Sendable {
    private struct State {
        var input = 0
        /// The one that may take over.
        var expected = 0
        /// Of the newest picture: monotonic nanoseconds.
        var newest = Int64.min
    }

    private let state = Mutex(State())

    /// Puts a picture in, if it is that camera's turn.
    ///
    /// - Returns: nil: another camera has taken over.
    func push(_ sample: Sample, _ body: () -> SampleQueue.Outcome) -> SampleQueue.Outcome? {
        state.withLock { state in
            guard state.input == sample.input else { return nil }
            let outcome = body()
            if outcome == .taken { state.newest = max(state.newest, sample.time) }
            return outcome
        }
    }

    /// From now on that camera may take over, and no other.
    func expect(_ input: Int) { state.withLock { $0.expected = input } }

    func expects(_ input: Int) -> Bool { state.withLock { $0.expected == input } }

    /// Takes over, if that camera may, and its picture is newer than all before.
    func take(_ input: Int, at time: Int64) -> Bool {
        state.withLock { state in
            guard time > state.newest, input == state.expected else { return false }
            state.input = input
            return true
        }
    }

    func isOf(_ input: Int) -> Bool { state.withLock { $0.input == input } }

    /// Calls the body as long as nobody else can take over, if it is that camera's turn.
    func ifOf(_ input: Int, _ body: () -> Void) { state.withLock { if $0.input == input { body() } } }
}
