import BusProtocol
public import JSON
import Synchronization

/// The current state of the bus and its changes. It stays complete when messages are lost or the bus restarts.
///
/// Only ``next()`` updates ``values``.
public final class StateObserver: AsyncSequence, Sendable {
    /// Something that became different, or happened.
    public enum Change: Hashable, Sendable {
        /// The topic's value; null: it is gone.
        case state(topic: String, value: JSONValue)
        /// `missed`: one before it on the same topic was lost.
        case event(topic: String, json: JSONValue, missed: Bool)
    }

    public typealias Element = Change
    public typealias Failure = ClientError

    private let client: Client
    private let messages: Messages
    private let timeout: Duration
    private let prefix: String
    private let mirror: Mutex<StateMirror>
    private let waiting = Mutex<[Change]>([])

    init(_ client: Client, _ messages: Messages, topics: [String], timeout: Duration) {
        self.client = client
        self.messages = messages
        self.timeout = timeout
        let states = topics.filter { $0.hasPrefix("state/") || "state/".hasPrefix($0) }
        // One topic's snapshot is small; for several it is asked for whole.
        prefix = states.count == 1 ? states[0] : "state/"
        mirror = Mutex(StateMirror(subscriptions: topics))
    }

    /// Values by topic, as of the last ``next()``.
    public var values: [String: JSONValue] { mirror.withLock(\.values) }

    /// The value of that topic: `state/device/cam0/`. nil: there is none.
    public subscript(topic: String) -> JSONValue? { mirror.withLock { $0.values[topic] } }

    /// The next change.
    public func next() async throws(ClientError) -> Change {
        while true {
            if let change = waiting.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return change }
            let message = try await messages.next()
            switch mirror.withLock({ $0.receive(topic: message.topic, message: message.json) }) {
            case .applied: return .state(topic: message.topic, value: self[message.topic] ?? .null)
            case .event(let missed):
                // It may also tell of a new epoch.
                try await catchUp()
                return .event(topic: message.topic, json: message.json, missed: missed)
            case .resynchronize, .kept: try await catchUp()
            case .ignored, .inStep: break
            }
        }
    }

    /// Runs until the topic's value meets the condition, beginning with the known value. Changes in between are
    /// skipped.
    ///
    /// - Parameter condition: gets the value; nil: there is none.
    @discardableResult
    public func wait(
        for topic: String, until condition: (JSONValue?) -> Bool
    ) async throws(ClientError) -> JSONValue? {
        while true {
            let value = self[topic]
            if condition(value) { return value }
            _ = try await next()
        }
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let observer: StateObserver

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> Change? {
            try await observer.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(observer: self) }

    func start() async throws(ClientError) {
        try await catchUp()
        waiting.withLock { $0 = [] }
    }

    private func catchUp() async throws(ClientError) {
        while mirror.withLock(\.needsSnapshot) {
            let before = values
            let snapshot: JSONValue
            do throws(ClientError) {
                snapshot = try await client.call("bus.snapshot", ["prefix": .string(prefix)], timeout: timeout)
            } catch .connectionLost {
                // The bus is being started again: the question waits for it, as long as the time limit says.
                continue
            }
            let isUsed = mirror.withLock { $0.adopt(snapshot: snapshot) }
            let after = values
            let changed = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }.sorted()
            waiting.withLock { waiting in
                waiting += changed.map { .state(topic: $0, value: after[$0] ?? .null) }
            }
            if !isUsed { try await takeWhatIsThere() }
        }
    }

    // A snapshot that is older than what came in meanwhile is of no use: the next one is newer.
    private func takeWhatIsThere() async throws(ClientError) {
        let message = try await messages.next()
        _ = mirror.withLock { $0.receive(topic: message.topic, message: message.json) }
    }
}
