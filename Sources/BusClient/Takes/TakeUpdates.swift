import BusProtocol
public import JSON
import Synchronization

/// The progress and the events of a take until it ends.
///
/// It continues over a restart of the bus. Only ``next()`` updates it. The subscription lasts as long as this value
/// lives.
public final class TakeUpdates: AsyncSequence, Sendable {
    public enum Update: Hashable, Sendable {
        /// How far it is.
        case state(TakeState)
        /// `didStartSegment`, `recordProgress`, `didEndSegment`, `recordDurationLessMinRecordDuration`,
        /// `recordDurationLargerEqualMaxRecordDuration`, `didDeleteSegment`, `exportProgress`, `didFinishTake` where
        /// that failed, or what a later bus tells, with its members.
        case event(String, JSONValue)
        /// The last one: it is finished or discarded. Who asked for that has the answer; the capture library has the
        /// movie under the take's id.
        case over
    }

    public typealias Element = Update
    public typealias Failure = ClientError

    /// The take's id.
    public let id: String
    private let client: Client
    private let observer: StateObserver
    private let timeout: Duration
    private let topic: String
    private let progress = Mutex(Progress.new)

    private enum Progress { case new, underWay, over }

    init(_ client: Client, _ id: String, _ observer: StateObserver, timeout: Duration) {
        self.client = client
        self.id = id
        self.observer = observer
        self.timeout = timeout
        topic = Self.stateTopic(id)
    }

    static func stateTopic(_ id: String) -> String { "state/take/\(id)/" }
    static func topics(_ id: String) -> [String] { [stateTopic(id), "event/take/\(id)/"] }

    /// The next update, the first of which is how far it is now; nil: it is over, and that was told.
    ///
    /// - Throws: ``ClientError/ended(directory:)`` with the bus, which the take outlives.
    public func next() async throws(ClientError) -> Update? {
        switch progress.withLock({ $0 }) {
        case .over: return nil
        case .new:
            progress.withLock { $0 = .underWay }
            if let value = observer[topic] { return .state(TakeState(value)) }
            if try await isOver() { return over() }
        case .underWay: break
        }
        while true {
            switch try await observer.next() {
            case .state(_, let value) where !value.isNull: return .state(TakeState(value))
            case .state:
                // It is over, or a new bus has not looked for it yet.
                if try await isOver() { return over() }
            case .event(_, let json, _): return .event(json["event"]?.string ?? "", json)
            }
        }
    }

    private func over() -> Update {
        progress.withLock { $0 = .over }
        return .over
    }

    private func isOver() async throws(ClientError) -> Bool {
        do throws(ClientError) {
            _ = try await client.take(id, timeout: timeout)
            return false
        } catch .connectionLost {
            // The next bus will tell.
            return false
        } catch .refused(let refusal) where refusal.reason == .takeNotFound {
            return true
        }
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let updates: TakeUpdates

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> Update? {
            try await updates.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(updates: self) }
}
