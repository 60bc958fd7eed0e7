public import BusProtocol
import JSON
import LinuxIO
import Synchronization
import ZeroMQ

/// A subscriber that does nothing but listen: all that came on one frame topic, each with its time of arrival.
public final class FrameRecorder: Sendable {
    public struct Entry: Sendable {
        /// Monotonic nanoseconds.
        public let arrival: Int64
        public let stream: String
        /// The topic's count within the stream; -1 for an error header.
        public let sequence: Int64
        /// The device's count within the stream.
        public let captureSequence: Int64
        public let dropped: Int64
        /// Why there is no frame; nil for a frame.
        public let error: BusError?

        public var isFrame: Bool { error == nil }

        /// This frame follows on that one with none missing between them.
        public func continues(_ other: Entry) -> Bool {
            stream == other.stream && sequence == other.sequence + 1 && captureSequence == other.captureSequence + 1
        }
    }

    private final class Record: Sendable {
        let entries = Mutex<[Entry]>([])
        let isStopping = Atomic<Bool>(false)
    }

    private let record = Record()
    private let thread: NamedThread

    public init(_ bus: BusHarness, _ device: String, _ rendition: String) throws {
        let (path, topic, record) = (bus.directory.mediaSocket(device), "frame/\(device)/\(rendition)/", record)
        thread = try NamedThread(name: "recorder") {
            guard let client = try? RawClient(.subscribe, path: path, topics: [topic]) else { return }
            while !record.isStopping.load(ordering: .relaxed) {
                guard let message = try? client.receive(within: 0.2), message.count >= 2,
                    let header = try? JSONValue(parsing: message[1].bytes)
                else { continue }
                let entry = Entry(header, at: MonotonicClock.now())
                record.entries.withLock { $0.append(entry) }
            }
        }
    }

    /// Ends the subscription.
    public func stop() {
        guard !record.isStopping.exchange(true, ordering: .relaxed) else { return }
        thread.join()
    }

    deinit { stop() }

    public var entries: [Entry] { record.entries.withLock { $0 } }

    /// The first entry for which the condition holds, from a place in the record on; waited for.
    ///
    /// - Returns: the entry and its place.
    public func first(
        from start: Int = 0, by deadline: Deadline = .usual, file: String = #fileID, line: Int = #line,
        where condition: (Entry) -> Bool
    ) async throws -> (place: Int, entry: Entry) {
        var place = start
        var found: (Int, Entry)?
        try await eventually(by: deadline, file: file, line: line) {
            let new = record.entries.withLock { Array($0.dropFirst(place)) }
            for entry in new {
                if condition(entry) {
                    found = (place, entry)
                    return true
                }
                place += 1
            }
            return false
        }
        guard let found else { throw TestingError("no such message has come") }
        return (found.0, found.1)
    }
}

extension FrameRecorder.Entry {
    fileprivate init(_ header: JSONValue, at arrival: Int64) {
        self.arrival = arrival
        stream = header["stream"]?.string ?? ""
        sequence = header["sequence"]?.integer ?? -1
        captureSequence = header["captureSequence"]?.integer ?? -1
        dropped = header["dropped"]?.integer ?? 0
        error = header["error"].map { BusError(header: $0) }
    }
}
