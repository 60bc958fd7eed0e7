public import BusProtocol
public import JSON

/// Requests that carry a key, so that one that is asked again is carried out once (idempotency keys).
///
/// Bounded: so many keys per user, and so many bytes in all; what finished first is forgotten first.
public struct RequestTable: Sendable {
    /// Nanoseconds for which an answer is kept.
    public static let lifetime: Int64 = 600_000_000_000

    /// What to do with a request.
    public enum Admission: Hashable, Sendable {
        /// Carry it out, and tell ``finish(uid:key:result:at:)``.
        case run
        /// It is being carried out: answer when that one is answered.
        case join
        /// It has been carried out: answer this.
        case replay(Result<JSONValue, BusError>)
    }

    private struct Entry: Sendable {
        /// Method and params, in a form that is the same for the same values.
        var request: [UInt8]
        var bytes: Int
        var finished: Finished?
    }

    private struct Finished: Sendable {
        var result: Result<JSONValue, BusError>
        var number: UInt64
    }

    private struct Mark: Sendable {
        var uid: UInt32
        var key: String
        var number: UInt64
        var time: Instant
    }

    private let maximumKeys: Int
    private let maximumBytes: Int
    private var entries: [UInt32: [String: Entry]] = [:]
    /// What finished, in that order; marks of entries that are gone are left in it for a while.
    private var marks: [Mark] = []
    private var firstMark = 0
    private var finishes: UInt64 = 0
    /// Bytes of all requests and answers that are kept.
    public private(set) var bytes = 0

    // What an entry costs beside its texts, about.
    private static let overhead = 256

    /// - Parameters:
    ///   - maximumKeys: of one user at a time.
    ///   - maximumBytes: of all requests and answers together.
    public init(maximumKeys: Int = 256, maximumBytes: Int = 64 << 20) {
        self.maximumKeys = maximumKeys
        self.maximumBytes = maximumBytes
    }

    /// Keys that are known now.
    public var count: Int { entries.values.reduce(0) { $0 + $1.count } }

    /// What is to be done with this request.
    ///
    /// - Throws: `invalidParams` {path: "key"} if the key stands for another request; `limitExceeded` {limit, maximum}
    ///   if so many of this user's requests, or so many bytes of all, are still being worked on.
    public mutating func begin(
        uid: UInt32, key: String, method: String, params: JSONValue, at now: Instant
    ) throws(BusError) -> Admission {
        forget(until: now.advanced(byNanoseconds: -Self.lifetime))
        let request = Array(method.utf8) + [0] + params.serialized
        if let known = entries[uid]?[key] {
            guard known.request == request else {
                throw .invalidParams("key", "belongs to another request already; use a new key for each request")
            }
            return known.finished.map { .replay($0.result) } ?? .join
        }
        let size = request.count + key.utf8.count + Self.overhead
        if let mine = entries[uid], mine.count >= maximumKeys {
            let oldest = mine.min { ($0.value.finished?.number ?? .max) < ($1.value.finished?.number ?? .max) }
            guard let oldest, oldest.value.finished != nil else {
                throw Self.full(
                    "\(maximumKeys) of your requests with keys are still running", "keys", maximumKeys)
            }
            remove(uid, oldest.key)
        }
        makeRoom(for: size)
        guard bytes + size <= maximumBytes else {
            throw Self.full("requests with keys need too much memory", "keyBytes", maximumBytes)
        }
        entries[uid, default: [:]][key] = Entry(request: request, bytes: size)
        bytes += size
        return .run
    }

    /// The answer to a request that was to be run. It is kept, unless it is larger than all the room there is.
    public mutating func finish(uid: UInt32, key: String, result: Result<JSONValue, BusError>, at now: Instant) {
        guard var entry = entries[uid]?[key], entry.finished == nil else { return }
        let size =
            switch result {
            case .success(let value): value.serialized.count
            case .failure(let error): error.json.serialized.count
            }
        finishes += 1
        entry.finished = Finished(result: result, number: finishes)
        entry.bytes += size
        bytes += size
        entries[uid]?[key] = entry
        marks.append(Mark(uid: uid, key: key, number: finishes, time: now))
        makeRoom(for: 0)
        forget(until: now.advanced(byNanoseconds: -Self.lifetime))
    }

    private mutating func makeRoom(for size: Int) {
        while bytes + size > maximumBytes, removeOldest() {}
    }

    private mutating func forget(until time: Instant) {
        while firstMark < marks.count, marks[firstMark].time <= time, removeOldest() {}
        tidy()
    }

    /// False if nothing has finished.
    private mutating func removeOldest() -> Bool {
        guard firstMark < marks.count else { return false }
        let mark = marks[firstMark]
        firstMark += 1
        if entries[mark.uid]?[mark.key]?.finished?.number == mark.number { remove(mark.uid, mark.key) }
        return true
    }

    private mutating func remove(_ uid: UInt32, _ key: String) {
        guard let entry = entries[uid]?.removeValue(forKey: key) else { return }
        bytes -= entry.bytes
        if entries[uid]?.isEmpty == true { entries[uid] = nil }
    }

    // Marks outlive their entries only until they are twice as many.
    private mutating func tidy() {
        guard marks.count > 64, marks.count > 2 * count else { return }
        marks = marks[firstMark...].filter { entries[$0.uid]?[$0.key]?.finished?.number == $0.number }
        firstMark = 0
    }

    private static func full(_ why: String, _ limit: String, _ maximum: Int) -> BusError {
        BusError(
            .limitExceeded, "Too many \(why); wait for their answers.",
            ["limit": .string(limit), "maximum": JSONValue(maximum)])
    }
}
