import BusProtocol
public import JSON
import Synchronization

/// The progress, the events and the end of a movie.
///
/// It continues over a restart of the bus, because the recorder continues too. Only ``next()`` updates it. The
/// subscription lasts as long as this value lives.
public final class MovieUpdates: AsyncSequence, Sendable {
    public enum Update: Hashable, Sendable {
        /// How far it is.
        case state(MovieState)
        /// `didStartRecording`, `didPauseRecording`, `didResumeRecording`, `didChangeSize`, of a server `didDisconnect`
        /// and `didReconnect`, or what a later bus tells, with its members.
        case event(String, JSONValue)
        /// The last one.
        case ended(MovieEnding)
    }

    public typealias Element = Update
    public typealias Failure = ClientError

    /// The movie's id.
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

    static func stateTopic(_ id: String) -> String { "state/movie/\(id)/" }
    static func topics(_ id: String) -> [String] { [stateTopic(id), "event/movie/\(id)/"] }

    /// The next update, the first of which is how far it is now; nil: it has ended, and that was told.
    ///
    /// - Throws: ``ClientError/ended(directory:)`` with the bus, which finishes its movies first.
    public func next() async throws(ClientError) -> Update? {
        switch progress.withLock({ $0 }) {
        case .over: return nil
        case .new:
            progress.withLock { $0 = .underWay }
            if let value = observer[topic] { return .state(MovieState(value)) }
            if let ending = try await ending() { return ended(ending) }
        case .underWay: break
        }
        while true {
            switch try await observer.next() {
            case .state(_, let value) where !value.isNull: return .state(MovieState(value))
            case .state:
                // It is over, or a new bus has not heard of it yet.
                if let ending = try await ending() { return ended(ending) }
            case .event(_, let json, _):
                let name = json["event"]?.string ?? ""
                guard name == "didFinishRecording" else { return .event(name, json) }
                return ended(try MovieEnding(json, of: id))
            }
        }
    }

    private func ended(_ ending: MovieEnding) -> Update {
        progress.withLock { $0 = .over }
        return .ended(ending)
    }

    /// How it ended, as the bus remembers it; nil: it has not.
    private func ending() async throws(ClientError) -> MovieEnding? {
        do throws(ClientError) {
            return try await client.movie(id, timeout: timeout).ending
        } catch .connectionLost, .ended {
            // It has told before it ended, or the next bus will.
            return nil
        } catch .refused(let refusal) where refusal.reason == .shuttingDown {
            return nil
        } catch .refused(let refusal) where refusal.reason == .notRecording {
            // It may have ended while there was no bus: the library alone knows how.
            guard let entry = try? await client.call("library.get", ["id": .string(id)], timeout: timeout)["entry"]
            else { throw .refused(refusal) }
            // Its recorder lives, and will tell the bus that has just begun.
            if entry["state"] == "recording" { return nil }
            return try MovieEnding(entry: entry, of: id)
        }
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let updates: MovieUpdates

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> Update? {
            try await updates.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(updates: self) }
}
